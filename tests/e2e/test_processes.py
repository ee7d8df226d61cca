"""Processes of user code: field case 28."""

import engine
from gateway import wait, within


def test_case_28_a_bare_fork(docker_gateway, any_client):
    c = any_client
    run = c.run('import os\nif os.fork() == 0: print("kid")\nelse: print("mum")')
    assert run.status == "ok" and run.states.count("idle") >= 1
    run = c.run('print("next")')
    assert "next\n" in run.stdout
    first = [m for m in c.messages if m.channel == "shell" and m.type == "execute_reply"]
    assert len(first) == 2, "one reply for each request"
    text = "".join(m.content["text"] for m in c.messages if m.type == "stream")
    assert text.count("mum") == 1


def test_nothing_is_left_after_shutdown(docker_gateway):
    kernel_id = docker_gateway.start_kernel("python3")
    with docker_gateway.open(kernel_id) as c:
        c.info()
        c.run("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)")
        c.run("import subprocess\n"
              "p = subprocess.Popen(['sleep', '600'], start_new_session=True); print(p.pid)")
        container = docker_gateway.container_of(kernel_id)
        docker_gateway.delete(f"/api/kernels/{kernel_id}")
    wait(lambda: [n for r in engine.containers(docker_gateway.run_dir) for n in r["Names"]],
         lambda names: "/" + container not in names, within(10))


def test_nothing_of_the_old_line_is_left_after_a_restart(docker_gateway, kernel, client):
    """A double fork in a session of its own is of the line too."""
    client.run("import os, time\n"
               "if os.fork() == 0:\n"
               "    os.setsid()\n"
               "    if os.fork() == 0:\n"
               "        os.execvp('sleep', ['sleep', '601'])\n"
               "    os._exit(0)")
    count = ("import glob\n"
             "n = 0\n"
             "for f in glob.glob('/proc/[0-9]*/cmdline'):\n"
             "    try: n += b'601' in open(f, 'rb').read().split(b'\\0')\n"
             "    except OSError: pass\n"
             "print(n)")
    wait(lambda: client.run(count).stdout, lambda text: text == "1\n", within(10))
    docker_gateway.post(f"/api/kernels/{kernel}/restart")
    assert client.run(count).stdout == "0\n"


def test_files_stay_over_a_restart(docker_gateway, kernel, client):
    client.run("open('kept.txt', 'w').write('here')")
    docker_gateway.post(f"/api/kernels/{kernel}/restart")
    assert client.run("print(open('kept.txt').read())").stdout == "here\n"


def test_no_zombies(client):
    client.run("import subprocess, os\n"
               "for _ in range(30):\n"
               "    subprocess.run(['true'])\n"
               "    if os.fork() == 0:\n"
               "        if os.fork() == 0: os._exit(0)\n"
               "        os._exit(0)\n"
               "    os.wait()")
    zombies = ("import glob\n"
               "n = 0\n"
               "for f in glob.glob('/proc/[0-9]*/stat'):\n"
               "    try: n += open(f).read().rsplit(')', 1)[1].split()[0] == 'Z'\n"
               "    except OSError: pass\n"
               "print(n)")
    wait(lambda: client.run(zombies).stdout, lambda text: text == "0\n", within(10))


def test_subprocess_output_arrives(any_client):
    run = any_client.run("import subprocess\n"
                         "print(subprocess.run(['echo', 'out'], stdout=subprocess.PIPE).stdout)")
    assert "out" in run.stdout
    assert any_client.run("!echo from the shell").stdout.strip() == "from the shell"


def test_multiprocessing(any_client):
    run = any_client.run("from multiprocessing import get_context\n"
                         "with get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))",
                         timeout=60)
    assert "[1, 2]" in run.stdout, run
