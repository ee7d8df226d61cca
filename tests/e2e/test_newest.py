"""The newest ipykernel: in a container (coppice_kernel, and as anybody's image over ipc), and as a
process with CURVE; subshells and iopub_welcome (wire-contract 1.15)."""

import pytest

from gateway import wait, within


@pytest.fixture(params=["newest", "foreign", "process"])
def newest(request):
    """(gateway, kernel id, client) of ipykernel 7, by each way that there is."""
    process = request.param == "process"
    gateway = request.getfixturevalue("process_gateway" if process else "docker_gateway")
    with gateway.kernel("python3" if process else request.param) as kernel_id:
        with gateway.open(kernel_id, "v1") as c:
            c.info(within(30))
            yield gateway, kernel_id, c


def test_is_the_newest(newest):
    _, _, c = newest
    assert c.run("import ipykernel; print(int(ipykernel.__version__.split('.')[0]) >= 7)").stdout \
        == "True\n"


def test_basics(newest):
    gateway, kernel_id, c = newest
    run = c.run("import sys; print('out'); print('err', file=sys.stderr); 6 * 7")
    assert (run.stdout, run.stderr, run.result) == ("out\n", "err\n", "42")
    assert run.states == ["busy", "idle"]
    msg_id = c.execute("print(input('q'))", allow_stdin=True)
    c.answer(c.until_type("input_request", msg_id), "yes")
    assert c.collect(msg_id).stdout == "yes\n"


def test_interrupt_and_restart(newest):
    gateway, kernel_id, c = newest
    msg_id = c.execute("import time; print('on', flush=True); time.sleep(60)")
    c.until_text("on", msg_id)
    assert gateway.post(f"/api/kernels/{kernel_id}/interrupt").status_code == 204
    assert c.collect(msg_id, within(15)).status == "error"
    c.run("kept = 1")
    assert gateway.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
    assert c.run("print('kept' in dir())", timeout=within(20)).stdout == "False\n"


def test_death_is_told(newest):
    gateway, kernel_id, c = newest
    msg_id = c.execute("import os, time; print('on', flush=True); time.sleep(.3); os._exit(4)")
    run = c.runs[msg_id]
    c.until(lambda m: run.reply and run.idle, within(15))
    c.until_state("restarting", within(10))
    assert c.run("print('back')", timeout=within(30)).stdout == "back\n"


def test_buffers(newest):
    _, _, c = newest
    run = c.run("from comm import create_comm\n"
                "create_comm('x').send({}, buffers=[b'\\x00\\xff', b''])")
    assert run.iopub("comm_msg")[0].buffers == [b"\x00\xff", b""]


def test_flood(newest):
    _, _, c = newest
    run = c.run("for k in range(20000): print(k)", timeout=90)
    assert run.stdout == "".join(f"{k}\n" for k in range(20000))


def test_subshell_runs_beside_a_busy_cell(newest):
    _, _, c = newest
    features = c.info().content.get("supported_features", [])
    assert "kernel subshells" in features
    created = c.ask("create_subshell_request", channel="control").reply.content
    assert created["status"] == "ok"
    subshell = created["subshell_id"]
    msg_id = c.execute("import time, threading\n"
                       "go = threading.Event(); print('on', flush=True); print(go.wait(60))")
    c.until_text("on", msg_id)
    beside = c.collect(c.execute("go.set(); print('beside')", header={"subshell_id": subshell}),
                       within(10))
    assert beside.stdout == "beside\n"
    assert c.collect(msg_id, within(10)).stdout.endswith("True\n")
    listed = c.ask("list_subshell_request", channel="control").reply.content
    assert subshell in listed["subshell_id"]
    assert c.ask("delete_subshell_request", {"subshell_id": subshell},
                 channel="control").reply.content["status"] == "ok"
    assert c.run("print('fine')").stdout == "fine\n"


def test_error_in_a_subshell_aborts_only_there(newest):
    _, _, c = newest
    subshell = c.ask("create_subshell_request", channel="control").reply.content["subshell_id"]
    main = c.execute("import time; time.sleep(1); print('main')")
    bad = c.execute("import time; time.sleep(.2); 1/0", header={"subshell_id": subshell})
    held = c.execute("print('held')", header={"subshell_id": subshell})
    after = c.execute("print('after')")
    assert c.collect(bad, within(10)).status == "error"
    assert c.collect(held, within(10)).status == "aborted"
    assert c.collect(main, within(10)).stdout == "main\n"
    assert c.collect(after, within(10)).stdout == "after\n"


def test_curve_where_the_kernelspec_says_so(process_gateway):
    for name, encrypted in (("python3", True), ("plain", False)):
        with process_gateway.kernel(name) as kernel_id, process_gateway.open(kernel_id) as c:
            assert c.run("print(1)", timeout=within(20)).stdout == "1\n"
            (line,) = process_gateway.slot_of(kernel_id)["slot"]["lines"]
            assert line["encrypted"] is encrypted
            run = c.run("import json\n"
                        "from ipykernel.connect import get_connection_file\n"
                        "print('curve_publickey' in json.load(open(get_connection_file())))")
            assert run.stdout == f"{encrypted}\n"


def test_welcome_is_harmless(process_gateway, fake_kernel, fake_client):
    """The scripted kernel greets each subscriber; a client may see that or not, and works on."""
    assert fake_client.run("1").status == "ok"
    assert process_gateway.slot_of(fake_kernel)["bad_frames"] == 0
    for m in fake_client.messages:
        assert m.type != "iopub_welcome" or m.content == {"subscription": ""}


def test_foreign_kernel_is_in_a_container(docker_gateway):
    with docker_gateway.kernel("foreign") as kernel_id, docker_gateway.open(kernel_id) as c:
        c.info(within(30))
        run = c.run("import os; print(sorted(os.listdir('/sys/class/net')), os.getuid() != 0)")
        assert run.stdout == "['lo'] True\n"
        docker_gateway.container_of(kernel_id)


def test_foreign_kernels_planted_socket_is_not_followed(docker_gateway):
    """Its sockets lie where the guest can write: a link in their place leads nowhere."""
    with docker_gateway.kernel("foreign") as kernel_id, docker_gateway.open(kernel_id) as c:
        c.info(within(30))
        c.run("import json, os\n"
              "from ipykernel.connect import get_connection_file\n"
              "f = json.load(open(get_connection_file()))\n"
              "for name in ('shell', 'iopub', 'stdin', 'control', 'hb'):\n"
              "    path = f\"{f['ip']}-{f[name + '_port']}\"\n"
              "    os.rename(path, path + '.old'); os.symlink('/var/run/docker.sock', path)")
        assert c.run("print('on')").stdout == "on\n"
        restart = docker_gateway.post(f"/api/kernels/{kernel_id}/restart")
        assert restart.status_code in (200, 500, 502, 503, 504)
        wait(lambda: docker_gateway.model(kernel_id)["execution_state"],
             lambda s: s in ("idle", "dead"), within(70))
    assert docker_gateway.get("/healthz").status_code == 200
