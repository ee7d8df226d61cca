"""A cell whose output is read by tests/bench/reader.c, on every kind of side."""

import json
import select
import socket
import subprocess
import time

import kit

SETTLE_S = 0.5  # until what is written behind (the journal, a peer's own queues) has been paid for
LIMIT_S = 600
STALLED_BYTES, READ_BYTES = 32 << 10, 1 << 20  # what a socket takes in


class Reader:
    def __init__(self, *argv, fds=()):
        self.process = subprocess.Popen(
            [str(kit.PROGRAMS / "reader"), *map(str, argv)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, pass_fds=fds)

    def up(self, seconds):
        """True once it said that it reads; it says nothing else before its end."""
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return False
        if self.process.stdout.readline() != b"up\n":
            raise RuntimeError("the reader could not begin")
        return True

    def result(self):
        try:
            out = self.process.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the cell did not end in {LIMIT_S} s") from None
        if self.process.returncode != 0:
            raise RuntimeError(f"the reader ended with {self.process.returncode}")
        return json.loads(out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def _ask(client, reader, code, pid):
    before, asked = pid and kit.cpu_ns(pid), time.monotonic()
    client.ask_execute(code)
    out = reader.result()
    if pid:
        time.sleep(SETTLE_S)
        out["cpu_ns"] = kit.cpu_ns(pid) - before
    out["from_request"] = out["last"] - asked
    return out


def over_socket(client, framing, code, pid):
    """client: a ready one; its socket is read by the reader until the cell's end."""
    fd = client.way.socket.fileno()
    with Reader("ws", fd, framing, client.next_id(), fds=(fd,)) as reader:
        if not reader.up(10):
            raise RuntimeError("the reader does not read")
        return _ask(client, reader, code, pid)


def over_stalled_socket(client, framing, code, seconds):
    """As over_socket, but the reader begins only so long after the request. The client's machine
    takes in little meanwhile: the rest is the gateway's matter."""
    sock = client.way.socket
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_BYTES)
    msg_id = client.ask_execute(code)
    time.sleep(seconds)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READ_BYTES)
    with Reader("ws", sock.fileno(), framing, msg_id, fds=(sock.fileno(),)) as reader:
        if not reader.up(10):
            raise RuntimeError("the reader does not read")
        return reader.result()


def direct(client, kernel, code):
    """Instead of the client's own SUB the reader's: each one costs the kernel."""
    client.way.leave_iopub()
    # The cell's request comes after those that find out whether the subscription has arrived.
    msg_id = f"{client.session}_cell"
    keys = [k.decode() for k in kernel.curve] if kernel.curve else []
    with Reader("zmq", kernel.addresses["iopub"], msg_id, *keys) as reader:
        deadline = time.monotonic() + 30
        while not reader.up(0.1):
            client.ask("kernel_info_request", {})
            if time.monotonic() > deadline:
                raise RuntimeError("nothing came on iopub")
        client.name_next(msg_id)
        return _ask(client, reader, code, None)
