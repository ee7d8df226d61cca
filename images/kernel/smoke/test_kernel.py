"""How kernels behave in the image, driven over `ctl` and ZeroMQ."""

import os
import signal
import time

import pytest

from coppice_kernel import ctl
from coppice_kernel.tests.fakegateway import text


def line_processes(place):
    return [p for p in place.container.top() if p[3] not in ("tini", "supervise")]


def test_no_zombies_after_100_kernels(place):
    g = place.gateway
    for _ in range(100):
        place.line += 1
        g.start(place.line)
        end = g.kill(place.line)
        assert (end["signal"], end["oom"]) == (signal.SIGKILL, False)
    assert line_processes(place) == []
    assert "Z" not in {p[2][0] for p in place.container.top()}


def test_kernel_holds_nothing_of_ours(place):
    place.start()
    second = place.start()
    out = second.run(
        "import os, socket, stat\n"
        "for fd in os.listdir('/proc/self/fd'):\n"
        "    try: is_socket = stat.S_ISSOCK(os.fstat(int(fd)).st_mode)\n"
        "    except OSError: continue\n"
        "    if not is_socket: continue\n"
        "    s = socket.socket(fileno=os.dup(int(fd)))\n"
        "    ends = [s.getsockname()]\n"
        "    try: ends.append(s.getpeername())\n"
        "    except OSError: pass\n"
        "    for end in ends:\n"
        "        if isinstance(end, str) and end: print(end)"
    )
    assert out
    held = {os.path.basename(name) for name in out.split()}
    assert held == {f"{c}-{second.line}" for c in ("shell", "iopub", "stdin", "control", "hb")}


def test_supervisor_is_closed_to_its_guests(kernel):
    out = kernel.run(
        "import os\n"
        "for name in ('mem', 'fd/3', 'environ'):\n"
        "    try: open(f'/proc/{os.getppid()}/{name}', 'rb'); print(name)\n"
        "    except OSError: pass"
    )
    assert out == ""


def test_death_by_signal_is_reported(kernel, place):
    kernel.send("shell", "execute_request", {"code": "import os; os.kill(os.getpid(), 9)"})
    began = time.monotonic()
    end = place.gateway.expect("exited", line=kernel.line)
    assert time.monotonic() - began < 3
    assert (end["signal"], end["oom"], end["left"]) == (signal.SIGKILL, False, 0)


def test_exit_codes_are_reported(place):
    for code, wanted in (("import os; os._exit(3)", 3), ("exit()", 0)):
        kernel = place.start()
        kernel.send("shell", "execute_request", {"code": code})
        end = place.gateway.expect("exited", line=kernel.line)
        assert (end["code"], end["signal"], end["oom"]) == (wanted, None, False)


def test_shutdown_request_ends_the_kernel(kernel, place):
    msg_id = kernel.send("control", "shutdown_request", {"restart": False})
    assert kernel.reply("control", msg_id)["content"]["status"] == "ok"
    assert place.gateway.expect("exited", line=kernel.line)["code"] == 0


def test_kill_reaches_double_forks_in_their_own_sessions(kernel, place):
    kernel.execute(
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            while True: time.sleep(60)\n"
        "        os._exit(0)\n"
    )
    end = place.gateway.kill(kernel.line)
    assert end["signal"] == signal.SIGKILL
    assert line_processes(place) == []


def test_what_a_dead_kernel_left_is_counted_and_ended(kernel, place):
    kernel.execute("import subprocess\nfor _ in range(4): subprocess.Popen(['sleep', '1000'])")
    kernel.send("shell", "execute_request", {"code": "import os; os._exit(0)"})
    assert place.gateway.expect("exited", line=kernel.line)["left"] == 4
    assert line_processes(place) == []


def test_line_process_killed_by_the_guest(kernel, place):
    kernel.send(
        "shell",
        "execute_request",
        {"code": "import os, subprocess; subprocess.Popen(['sleep', '999']); os.kill(os.getppid(), 9)"},
    )
    assert place.gateway.expect("exited", line=kernel.line)["signal"] == signal.SIGKILL
    place.start().run("1")
    assert len(line_processes(place)) == 2


def test_fork_bomb_meets_the_process_limit(make_place):
    place = make_place(pids=64)
    kernel = place.start()
    out = kernel.run(
        "import subprocess\n"
        "try:\n"
        "    for _ in range(200): subprocess.Popen(['sleep', '1000'])\n"
        "except OSError as e: print(type(e).__name__, e.errno)"
    )
    assert out == "BlockingIOError 11\n"
    assert place.gateway.kill(kernel.line)["signal"] == signal.SIGKILL
    assert place.start().run("print(6 * 7)") == "42\n"


def test_out_of_memory_is_told_apart(make_place):
    place = make_place(memory=256 << 20)
    kernel = place.start()
    kernel.send("shell", "execute_request", {"code": "x = [bytearray(1 << 20) for _ in range(4000)]"})
    end = place.gateway.expect("exited", line=kernel.line)
    assert (end["signal"], end["oom"]) == (signal.SIGKILL, True)
    again = place.start()
    assert again.run("print(6 * 7)") == "42\n"
    again.send("shell", "execute_request", {"code": "import os; os.kill(os.getpid(), 9)"})
    assert place.gateway.expect("exited", line=again.line)["oom"] is False


FORK = "import os\nif os.fork() == 0: print('kid')\nelse: print('mum')\n"


def test_forked_child_does_not_become_the_kernel(kernel, place):
    msg_id = kernel.send("shell", "execute_request", {"code": FORK})
    reply, seen = kernel.finish(msg_id)
    assert reply["status"] == "ok"
    assert text(seen, "stdout").count("mum") == 1
    assert kernel.run("print('next')") == "next\n"
    # No second reply and no second idle of the first request came before those of the next one.
    assert not kernel.shell.poll(0)
    out = kernel.run(
        "import os, time\n"
        "try:\n"
        "    while os.waitpid(-1, 0)[0]: pass\n"
        "except ChildProcessError: print('none left')"
    )
    assert out.endswith("none left\n")


def test_sigint_interrupts(kernel, place):
    msg_id = kernel.send(
        "shell",
        "execute_request",
        {"code": "print('on', flush=True)\nimport time; time.sleep(60)", "stop_on_error": False},
    )
    while kernel.receive("iopub")["header"]["msg_type"] != "stream":
        pass
    place.gateway.send("signal", line=kernel.line, signal=signal.SIGINT)
    assert place.gateway.expect("signalled", line=kernel.line)["ok"]
    assert kernel.reply("shell", msg_id, 10)["content"]["ename"] == "KeyboardInterrupt"
    assert kernel.run("print(1)") == "1\n"


@pytest.mark.parametrize("way", ["signal", "message"])
def test_interrupt_of_an_awaited_cell(kernel, place, way):
    code = "import asyncio\nprint('on', flush=True)\nawait asyncio.sleep(60)"
    msg_id = kernel.send("shell", "execute_request", {"code": code, "stop_on_error": False})
    while kernel.receive("iopub")["header"]["msg_type"] != "stream":
        pass
    if way == "signal":
        place.gateway.send("signal", line=kernel.line, signal=signal.SIGINT)
    else:
        kernel.send("control", "interrupt_request", {})
    content = kernel.reply("shell", msg_id, 20)["content"]
    assert (content["status"], content["ename"]) == ("error", "KeyboardInterrupt")
    assert kernel.run("print(1)") == "1\n"


def test_raw_bytes_on_descriptor_1(kernel):
    reply, _ = kernel.execute("import os; os.write(1, bytes([65, 255, 66, 10])); os.system('echo x')")
    assert reply["status"] == "ok"
    assert "still" in kernel.run("print('still')")
    _, seen = kernel.execute("import os, time; os.system('echo sys'); time.sleep(0.3)")
    assert "sys" in text(seen, "stdout")


def test_nothing_is_lost_to_a_stalled_reader(kernel):
    msg_id = kernel.send(
        "shell",
        "execute_request",
        {"code": "import sys\nfor i in range(20000): print(i); i % 10 or sys.stdout.flush()"},
    )
    kernel.reply("shell", msg_id)  # all was sent before we read the first line
    printed = ""
    while True:
        m = kernel.receive("iopub")
        if m["header"]["msg_type"] == "stream":
            printed += m["content"]["text"]
        elif m["content"].get("execution_state") == "idle" and m["parent"]["msg_id"] == msg_id:
            break
    assert printed.split() == [str(i) for i in range(20000)]


def test_fresh_interpreter_reads_its_variables(place):
    env = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "2", "KERNEL_X": "y", "PYTHONPATH": "/work/lib"}
    code = "import os, sys; print(hash('a'), os.environ['KERNEL_X'], '/work/lib' in sys.path, os.getcwd())"
    first = place.start(env=env, fresh=True).run(code)
    assert first == place.start(env=env, fresh=True).run(code)
    assert first.split()[1:] == ["y", "True", "/work"]


def test_environment_and_missing_folder(place):
    kernel = place.start(env={"A_B": "中"}, cwd="/home/ann/notebooks")
    assert kernel.run("import os; print(os.environ['A_B'], os.getcwd())") == "中 /work\n"


def test_modules_of_the_working_folder(place):
    for fresh in (False, True):
        kernel = place.start(fresh=fresh)
        kernel.run("open('ours.py', 'w').write('x = 5')")
        assert kernel.run("import ours; print(ours.x)") == "5\n"


def test_packages_that_the_user_installed(make_place):
    place = make_place()
    kernel = place.start()
    kernel.run(
        "import site, pathlib\nd = pathlib.Path(site.getusersitepackages())\n"
        "_ = (d / 'new.py').write_text('x = 6'), (d / 'pandas.py').write_text('x = 7')"
    )
    assert kernel.run("import new; print(new.x)") == "6\n"
    # pandas is imported before the fork: after a restart it must be the user's all the same.
    assert place.start().run("import new, pandas; print(new.x, pandas.x)") == "6 7\n"


def test_two_kernels_draw_different_numbers(place):
    code = "import numpy as np, random, uuid; print(np.random.rand(), random.random(), uuid.uuid4())"
    a, b = (place.start().run(code).split() for _ in range(2))
    assert not set(a) & set(b)


def test_debugger_answers(kernel):
    arguments = {"clientID": "t", "adapterID": "", "pathFormat": "path", "linesStartAt1": True}
    msg_id = kernel.send(
        "control",
        "debug_request",
        {"type": "request", "seq": 1, "command": "initialize", "arguments": arguments},
    )
    assert kernel.reply("control", msg_id)["content"]["success"] is True
    msg_id = kernel.send(
        "control",
        "debug_request",
        {"type": "request", "seq": 2, "command": "attach", "arguments": {}},
    )
    assert kernel.reply("control", msg_id, 30)["content"]["success"] is True


def test_history_request_is_answered(kernel):
    kernel.run("1")
    msg_id = kernel.send(
        "shell",
        "history_request",
        {"hist_access_type": "tail", "n": 5, "output": False, "raw": True},
    )
    assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"


def test_heartbeat_and_stdin(kernel):
    kernel.hb.send(b"beat")
    assert kernel.hb.poll(5000) and kernel.hb.recv() == b"beat"
    msg_id = kernel.send(
        "shell", "execute_request", {"code": "print(input('who? '))", "allow_stdin": True}
    )
    request = kernel.receive("stdin")
    assert request["content"]["prompt"] == "who? "
    kernel.send("stdin", "input_reply", {"value": "ann"}, request["header"])
    _, seen = kernel.finish(msg_id)
    assert text(seen, "stdout") == "ann\n"


def test_subshells_where_the_kernel_has_them(kernel):
    if "kernel subshells" not in kernel.info.get("supported_features", []):
        assert kernel.info["implementation_version"].startswith("8.")
        return
    msg_id = kernel.send("control", "create_subshell_request", {})
    assert kernel.reply("control", msg_id)["content"]["subshell_id"]


def test_garbage_on_ctl_is_answered_and_survived(place):
    g = place.gateway
    for packet in (b"\xff\xfe", b"{}", b"[1]", b'{"type":"start"}', b'{"type":"hello"}', b"[" * 60000):
        g.send_raw(packet)
        assert g.expect("error")["reason"]
    g.send("signal", line=999, signal=2)
    assert g.expect("signalled", line=999)["ok"] is False
    g.send("kill", line=999)
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(2)]
    g.send_raw(ctl.encode("kill", line=1), fds)
    assert "descriptors" in g.expect("error")["reason"]
    for fd in fds:
        os.close(fd)
    assert place.start().run("print(1)") == "1\n"


def test_listeners_that_are_no_sockets(place):
    g = place.gateway
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    names = [f"ipc:///run/coppice/x{i}" for i in range(5)]
    place.line += 1
    g.send(
        "start", fds, line=place.line, kernel="k", key="k", cwd="/", env={}, endpoints=names, fresh=False
    )
    assert g.expect("exited", line=place.line)["code"] != 0  # libzmq aborts
    for fd in fds:
        os.close(fd)


def test_kernel_lives_through_the_gateway_going_away(make_place):
    place = make_place()
    kernel = place.start()
    kernel.run("x = 41")
    place.gateway.hang_up()
    kernel.send("shell", "execute_request", {"code": "x += 1"})
    assert place.gateway.accept()["pid"] == place.hello["pid"]
    assert kernel.run("print(x)") == "42\n"
    assert place.gateway.kill(kernel.line)["signal"] == signal.SIGKILL
