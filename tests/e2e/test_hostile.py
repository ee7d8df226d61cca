"""A guest that means harm: design.md section 3, requirement R7. Its code has the kernel's key and
all that the kernel has; what it does stays in its container."""

import json
import os
import socket
import stat

import pytest

import engine
from gateway import ALICE, BOB, wait, within
from test_wire import say, script

COMM = '{"comm_id": "c", "data": {}}'
SEND = """
import json, os
def forge(msg_type, content, channel='iopub', **parent):
    k = get_ipython().kernel
    k.session.send(k.iopub_socket, msg_type, content=content, parent=parent or k.get_parent())
"""


def run(client, code, **options):
    r = client.run(code, **options)
    assert r.status == "ok", r
    return r.stdout


def folder_of(gateway):
    """Names and kinds of everything in the run folder, as the host sees them."""
    found = {}
    for path, folders, files in os.walk(gateway.run_dir):
        for name in folders + files:
            full = os.path.join(path, name)
            found[full] = stat.S_IFMT(os.lstat(full).st_mode)
    return found


def alive(gateway, witness):
    """The gateway and a neighbour's kernel go on."""
    assert witness.run("print('well')").stdout == "well\n"
    assert gateway.get("/healthz").status_code == 200


@pytest.fixture
def neighbour(docker_gateway):
    with docker_gateway.kernel("python3", token=BOB) as kernel_id:
        with docker_gateway.open(kernel_id, token=BOB) as c:
            c.info()
            yield c


class TestFolder:
    def test_sockets_belong_to_the_gateway(self, docker_gateway, kernel, client):
        for path, kind in folder_of(docker_gateway).items():
            assert kind in (stat.S_IFDIR, stat.S_IFSOCK), path
        assert stat.S_IMODE(os.stat(docker_gateway.run_dir).st_mode) & 0o077 == 0

    def test_nothing_can_be_planted(self, docker_gateway, kernel, client, neighbour):
        before = folder_of(docker_gateway)
        out = run(client, """
import os, socket
done = []
def tries(what, do):
    try:
        do(); done.append(what)
    except OSError:
        pass
for top in ['/run/coppice', *('/run/coppice/' + n for n in os.listdir('/run/coppice'))]:
    tries('link', lambda: os.symlink('/etc/passwd', top + '/x'))
    tries('file', lambda: open(top + '/f', 'w'))
    tries('replace', lambda: os.symlink('/etc/passwd', top + '.new'))
    tries('remove', lambda: os.remove(top))
    tries('rename', lambda: os.rename(top, top + '.old'))
    tries('mode', lambda: os.chmod(top, 0o777))
    def bind():
        s = socket.socket(socket.AF_UNIX); s.bind(top + '/s')
    tries('socket', bind)
print(done)
""")
        assert out == "[]\n"
        assert folder_of(docker_gateway) == before
        alive(docker_gateway, neighbour)

    def test_links_where_it_can_write_lead_nowhere(self, docker_gateway, kernel, client, neighbour):
        run(client, """
import os, socket
for top in ('/work', '/tmp', os.path.expanduser('~')):
    for k, target in enumerate(('/etc/shadow', '/run/coppice/ctl', '/proc/1/root',
                                '/var/run/docker.sock')):
        os.symlink(target, f'{top}/link{k}')
    s = socket.socket(socket.AF_UNIX); s.bind(f'{top}/ctl'); s.listen()
    os.mkfifo(f'{top}/fifo')
""")
        assert docker_gateway.post(f"/api/kernels/{kernel}/restart").status_code == 200
        assert run(client, "print(1)") == "1\n"
        alive(docker_gateway, neighbour)

    def test_ctl_is_the_supervisors(self, docker_gateway, kernel, client, neighbour):
        out = run(client, """
import os, socket
got = []
for k in range(20):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(2)
    try:
        s.connect('/run/coppice/ctl')
        s.send(b'{"type": "hello", "version": 1, "pid": 1}')
        got.append(s.recv(65536))
    except OSError as e:
        got.append(type(e).__name__)
print(any(isinstance(g, bytes) and g for g in got))
""")
        assert out == "False\n"
        assert run(client, "print(1)") == "1\n"
        alive(docker_gateway, neighbour)

    def test_race_for_ctl_after_killing_the_supervisor(self, docker_gateway, kernel, client,
                                                       neighbour):
        """Kills all it can; the container ends or heals, the neighbour and the gateway go on."""
        client.execute("""
import os, socket, signal
if os.fork() == 0:
    os.setsid()
    for _ in range(2000):
        try:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect('/run/coppice/ctl')
            s.send(b'{"type": "hello", "version": 1, "pid": 2}')
        except OSError:
            pass
for p in os.listdir('/proc'):
    if p.isdigit() and int(p) not in (1, os.getpid()):
        try: os.kill(int(p), 9)
        except OSError: pass
os.kill(-1, 9)
""")
        client.until(lambda m: m.type == "status" and m.content["execution_state"] in
                     ("restarting", "dead"), within(15))
        alive(docker_gateway, neighbour)
        if docker_gateway.model(kernel)["execution_state"] == "dead":
            assert docker_gateway.post(f"/api/kernels/{kernel}/restart").status_code == 200
        docker_gateway.wait_state(kernel, "idle", within(20))
        with docker_gateway.open(kernel) as c:
            assert c.run("print('back')").stdout == "back\n"

    def test_garbage_to_the_supervisor(self, docker_gateway, kernel, client, neighbour):
        run(client, """
import os, socket, stat
for n in os.listdir('/proc/self/fd'):
    try:
        if not stat.S_ISSOCK(os.stat(f'/proc/self/fd/{n}').st_mode): continue
        s = socket.socket(fileno=os.dup(int(n)))
        if s.family == socket.AF_UNIX and s.type != socket.SOCK_STREAM:
            s.setblocking(False)
            for bad in (b'garbage', b'{', b'{}', b'{"type": "kill", "line": 1}', b'x' * 60000):
                s.send(bad)
    except OSError:
        pass
""")
        assert run(client, "print(1)") == "1\n"
        alive(docker_gateway, neighbour)


class TestForged:
    def test_status_of_its_own_making(self, docker_gateway, kernel, client, neighbour):
        client.run(SEND + """
for state in ('dead', 'restarting', 'starting', 'idle', 'sleepy', 5, None):
    forge('status', {'execution_state': state})
forge('status', {})
""")
        assert run(client, "print('on')") == "on\n"
        docker_gateway.wait_state(kernel, "idle", within(5))
        alive(docker_gateway, neighbour)

    def test_foreign_parents(self, docker_gateway, kernel, client, neighbour):
        """Messages under the parents of a neighbour's request reach the neighbour by no way."""
        long = neighbour.execute("import time; print('on', flush=True); time.sleep(1)\n"
                                 "print('end')")
        neighbour.until_text("on", long)
        header = neighbour.runs[long].messages[0].parent
        run(client, SEND + f"""
parent = json.loads({json.dumps(json.dumps(header))})
for kind, content in (('stream', {{'name': 'stdout', 'text': 'EVIL'}}),
                      ('execute_reply', {{'status': 'ok', 'execution_count': 1}}),
                      ('status', {{'execution_state': 'idle'}}),
                      ('input_request', {{'prompt': 'EVIL', 'password': True}})):
    for k in range(3):
        s = get_ipython().kernel
        s.session.send(s.iopub_socket, kind, content=content,
                       parent={{'header': parent, **parent}})
""")
        done = neighbour.collect(long)
        assert done.stdout == "on\nend\n"
        neighbour.drain()
        assert not any("EVIL" in json.dumps(m.content) for m in neighbour.messages)

    def test_early_reply(self, docker_gateway, kernel, client, neighbour):
        """A reply before the reply, by the kernel's own socket and key."""
        msg_id = client.execute("""
import time
k = get_ipython().kernel
p = k.get_parent()
for _ in range(3):
    k.session.send(k.shell_stream, 'execute_reply', content={'status': 'ok', 'execution_count': 99},
                   parent=p, ident=k._parent_ident['shell'])
time.sleep(.3)
print('late')
""")
        client.until(lambda m: m.type == "execute_reply" and m.parent_id == msg_id)
        assert client.run("print('next')", timeout=within(10)).stdout.endswith("next\n")
        replies = [m for m in client.messages
                   if m.type == "execute_reply" and m.parent_id == msg_id]
        assert len(replies) == 1, "one reply for a request"
        docker_gateway.wait_state(kernel, "idle", within(5))
        alive(docker_gateway, neighbour)

    def test_guest_as_a_client_of_its_own_kernel(self, docker_gateway, kernel, client, neighbour):
        """It has the key; its sockets are the gateway's, which a guest may not open, or which
        give it no more than its own kernel."""
        out = run(client, """
import glob, socket
opened = 0
for name in glob.glob('/run/coppice/*'):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name); opened += 1
        s.send(b'\\xff' * 200)
    except OSError:
        pass
print(opened)
""")
        assert out.strip().isdigit()
        assert run(client, "print('on')") == "on\n"
        alive(docker_gateway, neighbour)

    def test_oversize_frame_is_told_and_over(self, docker_server):
        server = docker_server("oversize", "--message-limit", "1M")
        with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
            c.info()
            msg_id = c.execute("from IPython.display import display\n"
                               "display({'text/plain': 'z' * (3 << 20)}, raw=True)")
            c.until(lambda m: m.type == "stream" and m.content["name"] == "stderr"
                    and ("large" in m.content["text"] or "limit" in m.content["text"]), within(10))
            # The cell ends, by its own reply or by one that the gateway makes.
            c.collect(msg_id, within(15))
            assert c.run("print('on')", timeout=within(15)).stdout == "on\n"

    @pytest.mark.parametrize("step", [
        {"send": "iopub", "type": "x" * 100000, "content": "{}"},
        {"send": "iopub", "type": "stream", "header": '{"msg_id": "%s", "msg_type": "stream"}'
         % ("i" * 1000000)},
        {"send": "iopub", "type": "stream", "header": "{}"},
        {"send": "iopub", "type": "stream", "header": '{"msg_id": 1, "msg_type": 2}'},
        {"send": "iopub", "type": "stream", "content": '{"a":' + "[" * 100000 + "]" * 100000 + "}"},
        {**say("x"), "parent": "[]"}, {**say("x"), "parent": '{"msg_id": [1], "session": {}}'},
        {"send": "stdin", "type": "input_request", "parent": "none",
         "content": '{"prompt": "?", "password": false}'},
        {"send": "shell", "type": "execute_reply", "parent": "none", "content": '{"status": "ok"}'},
        {"send": "shell", "type": "execute_reply", "content": '{"status": 7}'},
        {"send": "control", "type": "shutdown_reply", "content": '{"restart": false}'},
        {"send": "control", "type": "kernel_info_reply", "content": "{}"},
        {"send": "iopub", "type": "comm_msg", "content": COMM, "buffers64": [""] * 3000},
        {"send": "iopub", "type": "comm_msg", "content": COMM, "buffers64": [""] * 6000},
        {"raw64": [""] * 10, "on": "iopub"}, {"raw64": ["eA=="] * 9, "on": "shell"},
    ], ids=lambda s: f"{s.get('send', 'raw')} {s.get('type', '')[:20]}")
    def test_scripted_kernel(self, process_gateway, fake_kernel, step):
        with process_gateway.kernel("fake") as other, process_gateway.open(other) as witness:
            witness.info()
            with process_gateway.open(fake_kernel) as a, \
                    process_gateway.open(fake_kernel, "v1") as b:
                a.info(), b.info()
                msg_id = a.execute(script(step, step, say("end")))
                a.until_text("end", msg_id)
                a.collect(msg_id)
                assert b.run("1").status == "ok"
            assert witness.run("1").status == "ok"


class TestLimits:
    def test_as_the_engine_was_told(self, docker_gateway, kernel, client):
        told = engine.inspect(docker_gateway.container_of(kernel))
        host = told["HostConfig"]
        assert host["Memory"] >= 1 << 30 and host["PidsLimit"] == 152
        assert host["ReadonlyRootfs"] is True and host["NetworkMode"] == "none"
        assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"]
        assert any(o.startswith("no-new-privileges") for o in host["SecurityOpt"])
        assert any(o.startswith("seccomp") for o in host["SecurityOpt"])
        assert host["LogConfig"]["Config"].get("max-size") == "1m"
        assert told["Config"]["User"] not in ("", "0", "root")
        # Unlimited while it starts, 0.5 from the hand-over on.
        wait(lambda: engine.inspect(docker_gateway.container_of(kernel))["HostConfig"],
             lambda h: h["NanoCpus"] == 500000000 or
             (h["CpuPeriod"] and h["CpuQuota"] / h["CpuPeriod"] == 0.5), within(5))

    def test_as_the_guest_sees_it(self, client):
        out = run(client, """
import os
s = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())
print(os.getuid() != 0, int(s['CapEff'], 16), s['NoNewPrivs'].strip(), s['Seccomp'].strip())
print(sorted(os.listdir('/sys/class/net')))
def fails(do):
    try: do(); return False
    except OSError: return True
print(fails(lambda: open('/etc/x', 'w')), fails(lambda: open('/usr/x', 'w')),
      fails(lambda: os.setuid(0)))
print(os.path.exists('/var/run/docker.sock'))
""")
        assert out == "True 0 1 2\n['lo']\nTrue True True\nFalse\n"

    def test_no_network(self, client):
        out = run(client, """
import socket
for where in (('1.1.1.1', 53), ('127.0.0.1', 80), ('169.254.169.254', 80)):
    try:
        socket.create_connection(where, timeout=2); print('open', where)
    except OSError:
        pass
try:
    socket.getaddrinfo('example.org', 80); print('resolved')
except OSError:
    print('closed')
""")
        assert out == "closed\n"

    def test_fork_bomb(self, docker_gateway, kernel, client, neighbour):
        out = run(client, """
import os, time
n = 0
try:
    while n < 1000:
        if os.fork() == 0:
            time.sleep(600); os._exit(0)
        n += 1
    print('no limit')
except OSError as e:
    print('stopped', n < 152)
""", timeout=60)
        assert "stopped True" in out
        alive(docker_gateway, neighbour)
        assert docker_gateway.post(f"/api/kernels/{kernel}/restart").status_code == 200
        assert client.run("print('on')", timeout=within(20)).stdout == "on\n"

    def test_disk_is_full_and_says_so(self, docker_server):
        server = docker_server("disk", "--work-size", "8M", "--work-inodes", "200",
                               "--tmp-size", "4M")
        with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
            c.info()
            for path, mebi in (("/work", 8), ("/tmp", 4), ("/home", 4), ("/dev/shm", 4)):
                r = c.run(f"""
import os
top = {path!r} if {path!r} != '/home' else os.path.expanduser('~')
n = 0
with open(top + '/big', 'wb') as f:
    try:
        for n in range(64): f.write(b'x' * (1 << 20)); f.flush()
    except OSError as e:
        print(e.errno, n <= {mebi})
os.remove(top + '/big')""")
                assert "28 True" in r.stdout, (path, r)
            for path in ("/work", "/dev/shm"):
                r = c.run(f"for k in range(1000): open({path!r} + f'/f{{k}}', 'w')")
                assert r.status == "error" and r.reply.content["ename"] == "OSError", path
            assert c.run("print('on')").stdout == "on\n"

    def test_engine_log_stays_small(self, docker_gateway, kernel, client):
        client.run("""
import glob, os
line = b'flood ' * 1000 + b'\\n'
for name in ('/proc/1/fd/1', '/proc/1/fd/2', '/dev/console', '/proc/self/fd/1', '/proc/self/fd/2'):
    try:
        f = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
        for _ in range(2000):
            try: os.write(f, line)
            except BlockingIOError: pass
    except OSError:
        pass
""", timeout=60)
        told = engine.inspect(docker_gateway.container_of(kernel))
        path = told["LogPath"]
        size = sum(os.path.getsize(os.path.join(os.path.dirname(path), n))
                   for n in os.listdir(os.path.dirname(path)) if n.endswith(".log") or ".log." in n)
        assert size < 2 << 20
        assert run(client, "print('on')").endswith("on\n")


class TestDescriptors:
    def test_children_get_none(self, client):
        out = run(client, '''
import subprocess, sys
code = """
import os
for n in os.listdir('/proc/self/fd'):
    try:
        if int(n) > 2: print(os.readlink('/proc/self/fd/' + n))
    except OSError:
        pass
"""
print(subprocess.run([sys.executable, '-c', code], close_fds=False, capture_output=True,
                     text=True).stdout)
''')
        left = [line for line in out.split("\n") if line and not line.startswith("/proc/")]
        assert left == []

    def test_kernel_does_not_hold_ctl(self, client):
        out = run(client, """
import os, socket, stat
names = []
for n in os.listdir('/proc/self/fd'):
    try:
        if stat.S_ISSOCK(os.stat(f'/proc/self/fd/{n}').st_mode):
            s = socket.socket(fileno=os.dup(int(n)))
            for ask in (s.getsockname, s.getpeername):
                try: names.append(str(ask()))
                except OSError: pass
    except OSError:
        pass
print([n for n in names if 'ctl' in n])
""")
        assert out == "[]\n"

    def test_only_the_kernel_listens(self, docker_gateway, kernel, client):
        """Supervisor and init keep no copy of the kernel's listeners: else a dead one accepts."""
        before = {r["line"] for r in [docker_gateway.slot_of(kernel)]}
        out = run(client, """
import os
own = set()
for n in os.listdir('/proc/self/fd'):
    try: own.add(os.readlink(f'/proc/self/fd/{n}'))
    except OSError: pass
own = {n for n in own if n.startswith('socket:')}
shared = set()
for p in os.listdir('/proc'):
    if p.isdigit() and int(p) != os.getpid():
        try:
            for n in os.listdir(f'/proc/{p}/fd'):
                link = os.readlink(f'/proc/{p}/fd/{n}')
                if link in own: shared.add(link)
        except OSError:
            pass
print(sorted(shared))
""")
        assert out == "[]\n" and before == {1}

    def test_descriptors_of_the_gateway_come_back(self, docker_gateway):
        fds = f"/proc/{docker_gateway.process.pid}/fd"

        def rounds(n):
            for _ in range(n):
                with docker_gateway.kernel("python3") as kernel_id:
                    with docker_gateway.open(kernel_id) as c:
                        c.info()
            return len(os.listdir(fds))

        before = rounds(2)
        wait(lambda: rounds(2), lambda n: n <= before, within(20))


def test_mounted_data_is_read_only(docker_server, tmp_path):
    """R38: a deployment's data folder is seen at /data/NAME."""
    tmp_path.joinpath("sales.csv").write_text("a\n1\n")
    os.chmod(tmp_path, 0o755)
    server = docker_server("mount", "--mount", f"shop={tmp_path}:ro")
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        r = c.run("print(open('/data/shop/sales.csv').read())\n"
                  "open('/data/shop/new', 'w')")
        assert r.stdout == "a\n1\n\n" and r.reply.content["ename"] in ("OSError", "PermissionError")
    assert os.listdir(tmp_path) == ["sales.csv"]


# The first: libwebsockets sees no length in it (its copy has 31 characters), and so reads no body.
REFUSED = {
    "length_with_nul": b"GET /api/kernels HTTP/1.1\r\nHost: x\r\nContent-Length: 52\0" +
                       b"y" * 32 + b"\r\n\r\nx",
    "short_length_with_nul": b"POST /api/kernels HTTP/1.1\r\nHost: x\r\nContent-Length: 2\0y\r\n\r\nx",
    "coding_with_nul": b"POST /api/kernels HTTP/1.1\r\nHost: x\r\n"
                       b"Transfer-Encoding: chunked\0y\r\n\r\nx",
    "upgrade_with_nul": b"GET /api/kernels/x/channels HTTP/1.1\r\nHost: x\r\nOrigin: y\0y\r\n"
                        b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\nx",
    "bad_length": b"GET /api/kernels HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\nx",
    "no_http": b"\x16\x03\x01\x02",
    "too_long": b"GET /" + b"a" * 70000,
}
UNFINISHED = [b"", b"GET /api", b"GET /api/kernels HTTP/1.1\r\nHost: x\r\n",
              b"GET /api/kernels HTTP/1.1\r\nX: \0\r\n", b"GET /healthz HTTP/1.1\r\n\r\nGET /"]


class TestStranger:
    """Without a token: what comes before one can be asked for costs nearly nothing, and ends."""

    def call(self, gateway, data, half):
        s = socket.create_connection(("127.0.0.1", gateway.port), within(4))
        try:
            s.sendall(data)
            if half:
                s.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the gateway was quicker
        return s

    def ended(self, s):
        """Waits until the gateway has closed; what it said before."""
        answer = b""
        try:
            while chunk := s.recv(65536):
                answer += chunk
        except ConnectionError:
            pass
        return answer

    def wait_rest(self, gateway):
        """Until ten looks in a row find the same processor time: it is counted in hundredths of
        a second, and a loop that spins uses one between any two or three."""
        seen = []

        def rests():
            with open(f"/proc/{gateway.process.pid}/stat") as f:
                seen.append(f.read().rsplit(")", 1)[1].split()[11:13])
            return len(seen) >= 10 and all(s == seen[-1] for s in seen[-10:])

        wait(rests, bool, within(4))

    @pytest.mark.parametrize("half", [True, False], ids=["half_closed", "open"])
    @pytest.mark.parametrize("name", REFUSED)
    def test_refused_head(self, process_gateway, name, half):
        with self.call(process_gateway, REFUSED[name], half) as s:
            self.wait_rest(process_gateway)
            answer = self.ended(s)
            # Who leaves before the answer is written may get none.
            assert half or "with_nul" not in name or answer.startswith(b"HTTP/1.1 400"), answer

    @pytest.mark.parametrize("before", [b"", b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"],
                             ids=["first", "later"])
    def test_more_behind_a_body(self, process_gateway, before):
        """Who does not wait for an answer gets it, and has to come back for the rest."""
        post = (b"POST /api/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: token "
                + ALICE.encode() + b"\r\nContent-Length: 2\r\n\r\n[]")
        with self.call(process_gateway, before + post + b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n" * 3,
                       False) as s:
            self.wait_rest(process_gateway)
            assert self.ended(s).count(b"HTTP/1.1 ") == 1

    @pytest.mark.parametrize("data", UNFINISHED, ids=repr)
    def test_unfinished_head_of_who_has_left(self, process_gateway, data):
        with self.call(process_gateway, data, True) as s:
            self.wait_rest(process_gateway)
            self.ended(s)

    @pytest.mark.parametrize("half", [True, False], ids=["half_closed", "open"])
    def test_answers_that_nobody_reads(self, process_gateway, half):
        n, request = 20000, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        s = socket.socket()
        with s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(within(10))
            s.connect(("127.0.0.1", process_gateway.port))
            s.sendall(request * n)
            if half:
                s.shutdown(socket.SHUT_WR)
            self.wait_rest(process_gateway)
            # Each connection carries one request where the library cannot do more (listen_http.c).
            answers = self.ended(s).count(b'"ok"')
            assert answers in (0, 1, n), answers  # what is still on its way then is lost with it

    def test_unfinished_head_has_a_deadline(self, process_gateway):
        waiting = [self.call(process_gateway, data, False) for data in UNFINISHED[:-1]]
        self.wait_rest(process_gateway)
        for s in waiting:
            s.settimeout(within(20))
            assert self.ended(s) == b""
            s.close()
