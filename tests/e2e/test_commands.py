"""`coppice status` and `coppice doctor` beside a running gateway."""

import json
import os
import socket
import subprocess

import pytest

from gateway import BUILD, Server, within


def ask(server, command, *args, env=None, run_dir=None):
    return subprocess.run(
        [server.argv[0], command, *args, "--data-dir", str(server.data_dir), "--run-dir",
         run_dir or server.run_dir, "--engine", "process"],
        env={**server.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=within(30))


def make_certificate(home, subject):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", f"/CN={subject}", "-addext", f"subjectAltName=DNS:{subject}",
                    "-keyout", home / "key.pem", "-out", home / "cert.pem"],
                   check=True, capture_output=True)


@pytest.fixture
def tls_server(spec_path, tmp_path):
    """A gateway whose certificate is for the name that others use."""
    make_certificate(tmp_path, "coppice.example")
    server = Server("tls-own", "--engine", "process", "--tls-cert", tmp_path / "cert.pem",
                    "--tls-key", tmp_path / "key.pem", env={"JUPYTER_PATH": spec_path},
                    scheme="https")
    server.http_session.verify = False  # it asks by the address
    with server:
        yield server


@pytest.fixture
def dead_proxy():
    """An address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        yield f"http://127.0.0.1:{s.getsockname()[1]}"


def test_status(process_server):
    server = process_server("status")
    with server.kernel("fake") as kernel_id:
        text = ask(server, "status")
        assert text.returncode == 0 and kernel_id in text.stdout, text
        tree = json.loads(ask(server, "status", "--json").stdout)
        assert [k["id"] for k in tree["kernels"]] == [kernel_id]
        assert tree["status"]["kernels"] == 1


@pytest.mark.parametrize("command", [["log"], ["forget", "HEAD"]])
def test_before_anything_ran(process_server, command):
    result = ask(process_server("empty"), *command)
    assert result.returncode == 1 and "no history yet: run a cell first" in result.stderr, result


def test_a_proxy_in_the_environment_does_not_matter(process_server, dead_proxy):
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    env = dict.fromkeys(names, dead_proxy)
    server = process_server("proxied", env=dict(env))
    result = ask(server, "status", env=env)
    assert result.returncode == 0 and server.url in result.stdout, result
    with server.kernel("fake") as kernel_id, server.open(kernel_id) as c:
        assert c.run("1").status == "ok"


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_a_certificate_of_ones_own(tls_server):
    """The one that server.json names is trusted, and it alone."""
    result = ask(tls_server, "status")
    assert result.returncode == 0 and "https://" in result.stdout, result
    assert "runs at https://" in ask(tls_server, "doctor").stdout
    # By its URL it could be anybody's.
    result = ask(tls_server, "status", "--url", tls_server.url)
    assert result.returncode == 1 and "does not answer" in result.stderr, result


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_another_certificate_is_not_believed(tls_server, tmp_path):
    make_certificate(tmp_path, "coppice.example")  # the file is newer than what the server read
    result = ask(tls_server, "status")
    assert result.returncode == 1 and "does not answer" in result.stderr, result


def test_a_second_start_is_refused_and_changes_nothing(process_server):
    server = process_server("twice")
    second = ask(server, "serve", "--listen", "127.0.0.1:0")
    assert second.returncode == 1 and "in use by another gateway" in second.stderr, second
    assert "--run-dir" in second.stderr and "--data-dir" in second.stderr, second
    second = ask(server, "serve", "--listen", "127.0.0.1:0", run_dir=str(server.home / "run"))
    assert second.returncode == 1 and "end it, or give another --data-dir" in second.stderr, second
    result = ask(server, "status")
    assert result.returncode == 0 and server.url in result.stdout, result


def test_a_data_folder_that_is_not_there_is_told_at_the_start(tmp_path):
    program = os.environ.get("COPPICE_BIN", str(BUILD / "coppice"))
    started = subprocess.run(
        [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data", "--run-dir",
         tmp_path / "run", "--mount", f"books={tmp_path}/books:ro"],
        env={"HOME": str(tmp_path)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=within(30))
    assert started.returncode == 1, started
    assert f"there is no folder {tmp_path}/books: make it" in started.stderr, started


def test_nobody_runs(process_server):
    server = process_server("ended")
    server.stop()
    result = ask(server, "status")
    assert result.returncode == 1 and "coppice serve" in result.stderr, result
