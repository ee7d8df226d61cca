"""The kernel: ipykernel on sockets that the gateway made and listens on already."""

import asyncio
import atexit
import json
import logging
import os
import signal
import site
import sys
import threading
import traceback
from contextlib import contextmanager
from functools import cached_property

import zmq
from ipykernel.heartbeat import Heartbeat
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from tornado.ioloop import IOLoop
from traitlets.config import Config

from coppice_kernel import deliver, descriptors, files, magics, park, pause, process, revive, watchdog
from coppice_kernel.streams import CoppiceStream

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")  # the order of endpoints and descriptors


def _leave_fork(kernel_pid):
    """Ends a child of the cell's own os.fork() that came back as if it were the kernel."""
    if os.getpid() == kernel_pid:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


def bind(socket, endpoint, fd):
    """Binds a ZeroMQ socket to a listener that exists. No high-water mark: what the gateway does
    not take yet waits here, under the container's memory limit, and is not dropped."""
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.USE_FD, fd)
    socket.bind(endpoint)


class CoppiceHeartbeat(Heartbeat):
    def __init__(self, context, endpoint, fd):
        # A port other than 0 keeps it from looking for one.
        super().__init__(context, ("ipc", endpoint, 1))
        self._listener = (endpoint, fd)
        self.bound = threading.Event()

    def _bind_socket(self):
        bind(self.socket, *self._listener)
        self.bound.set()


class CoppiceShell(ZMQInteractiveShell):
    _kernel_pid = None
    _interrupted = False  # the awaited cell was cancelled by an interrupt

    async def run_ast_nodes(self, *args, **kwargs):
        failed = await super().run_ast_nodes(*args, **kwargs)
        _leave_fork(self._kernel_pid)
        result = kwargs.get("result")
        if self._interrupted and isinstance(
            getattr(result, "error_in_exec", None), asyncio.CancelledError
        ):
            result.error_in_exec = KeyboardInterrupt()
        return failed

    def _get_exc_info(self, exc_tuple=None):
        """An interrupted await ends as every interrupted cell does."""
        kind, value, trace = super()._get_exc_info(exc_tuple)
        if self._interrupted and isinstance(value, asyncio.CancelledError):
            return KeyboardInterrupt, KeyboardInterrupt().with_traceback(trace), trace
        return kind, value, trace


class CoppiceKernel(IPythonKernel):
    shell_class = CoppiceShell

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._kernel_pid = os.getpid()
        self.shell._kernel_pid = self._kernel_pid
        self._files = files.Files(self.parent.folder, self.parent.delivery)
        self._pause = pause.Pause(
            self.shell, self.parent.delivery.report, park.Parker(self.parent), self._files
        )
        magics.Magics(self.parent.delivery.ask).register(self.shell)
        _ = self.banner  # made now

    @cached_property
    def banner(self):
        """Once, before the user's code: the newest IPython draws a tip for it from the user's `random`, and
        whoever asks for kernel_info would move it."""
        return super().banner

    async def dispatch_shell(self, *args, **kwargs):
        self._pause.over()
        try:
            await super().dispatch_shell(*args, **kwargs)
        finally:
            self._pause.begins()

    async def do_execute(self, *args, **kwargs):
        self._pause.executes()
        try:
            return await super().do_execute(*args, **kwargs)
        finally:
            _leave_fork(self._kernel_pid)
            self._pause.executed(self.get_parent("shell"))

    def finish_metadata(self, parent, metadata, reply_content):
        metadata = super().finish_metadata(parent, metadata, reply_content)
        told = {"peak_bytes": self._pause.peak_bytes(parent), "files": self._pause.files_of(parent)}
        told = {name: value for name, value in told.items() if value is not None}
        if told:
            metadata["coppice"] = told
        return metadata

    @contextmanager
    def _cancel_on_sigint(self, future):
        """An interrupt of an awaited cell.

        ipykernel's own uses call_soon() from the signal handler, which does not wake a loop that
        sleeps in its selector: the interrupt came when the awaited call ended by itself, and was then
        reported as a CancelledError.
        """
        loop = asyncio.get_running_loop()

        def on_sigint(*_):
            self.shell._interrupted = True
            loop.call_soon_threadsafe(future.cancel)

        self.shell._interrupted = False
        before = signal.signal(signal.SIGINT, on_sigint)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class CoppiceApp(IPKernelApp):
    kernel_class = CoppiceKernel
    is_revived = False
    ours = None  # descriptors of the kernel itself, once it is ready
    users = ()  # numbers of those that a revived kernel has from its user

    def take(self, endpoints, listeners, delivery, folder):
        self._places = dict(zip(CHANNELS, zip(endpoints, listeners)))
        self._outbox = delivery.box
        self.delivery = delivery
        self.watchdog = watchdog.Watchdog()
        self.folder = folder

    def streams(self):
        """What captures stdout and stderr, whatever the user put in their place."""
        return [s for s in (self.kernel._stdout, self.kernel._stderr) if isinstance(s, CoppiceStream)]

    def loops(self):
        threads = (self.control_thread, self.iopub_thread, getattr(self, "shell_channel_thread", None))
        return [o.io_loop.asyncio_loop for o in (self, *threads) if o]

    def start(self):
        IOLoop.current()  # the newest ipykernel makes it at its start
        self.heartbeat.bound.wait(5)
        self.ours = descriptors.Ours(self.users)
        super().start()

    def begin_again(self):
        """As initialize(), less what a session has had once: configuration files, start-up code, paths."""
        self.is_revived = True
        self.init_connection_file()
        self.init_sockets()
        self.init_heartbeat()
        self.log_connection_info()
        self.init_io()
        self.init_signal()
        self.init_kernel()
        self.init_shell()

    def patch_io(self):
        if not self.is_revived:
            super().patch_io()

    def configure_tornado_logger(self):
        if not logging.getLogger("tornado").handlers:
            super().configure_tornado_logger()

    def _bind_socket(self, s, port):
        channel = next(c for c in CHANNELS if getattr(self, f"{c}_socket", None) is s)
        self._outbox.attach(s, channel)
        bind(s, *self._places[channel])
        if channel == "shell":
            # The debugger connects to the last endpoint of shell, and the first one's name is
            # the host's.
            s.bind("inproc://coppice-shell")
        return 1

    def init_heartbeat(self):
        self.heartbeat = CoppiceHeartbeat(zmq.Context(), *self._places["hb"])
        self.hb_port = 1
        self.heartbeat.start()

    def end_control(self):
        """Before the exit functions, of which one ends iopub: a control thread that flushes at that
        moment, as it does after a shutdown_request, would wait for it for 10 s and more."""
        if self.control_thread and self.control_thread.is_alive():
            self.control_thread.stop()
            self.control_thread.join()

    def init_path(self):
        """The working folder's modules: left out where the interpreter was started without it."""
        super().init_path()
        if "" not in sys.path:
            sys.path.insert(0, "")

    # There is no connection file: nobody but the gateway connects.

    def init_connection_file(self):
        self.connection_file = "coppice"

    def write_connection_file(self, **kwargs):
        pass

    def cleanup_connection_file(self):
        pass

    def log_connection_info(self):
        self._ports = dict.fromkeys(CHANNELS, 1)


def _configuration(key):
    c = Config()
    c.Session.key = key.encode()
    c.Session.signature_scheme = "hmac-sha256"
    # In memory: clients ask for it, and no file of SQLite is open when the kernel forks.
    c.HistoryManager.hist_file = ":memory:"
    c.IPKernelApp.outstream_class = "coppice_kernel.streams.CoppiceStream"
    c.IPKernelApp.parent_handle = 0
    c.IPKernelApp.transport = "ipc"
    c.IPKernelApp.ip = "coppice"
    return c


def _see_user_packages():
    """What the user installs is found at once: an import remembers that a folder did not exist."""
    folder = site.getusersitepackages()
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return  # no home to install into
    if folder not in sys.path:
        # Where Python itself puts it: before what came with the image.
        later = [i for i, p in enumerate(sys.path) if p.endswith("dist-packages")]
        sys.path.insert(later[0] if later else len(sys.path), folder)
        site.addsitedir(folder)


def settle_in(spec):
    """Environment and folder: at the start, and once more when it is handed over to somebody."""
    os.environ.update(spec["env"])
    if spec["kernel"]:  # else nobody's yet
        os.environ.setdefault("KERNEL_ID", spec["kernel"])
    for folder in (spec["cwd"], "/work", "/"):
        try:
            os.chdir(folder)
            break
        except OSError:
            continue


def _settle(spec):
    """What the kernel process finds around it."""
    settle_in(spec)
    sys.argv = ["coppice-kernel"]
    sys.path[:] = [p for p in sys.path if p]
    _see_user_packages()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random:
        numpy_random.seed()  # else every forked kernel draws the same numbers
    process.set_name("kernel")


def _redirect():
    """0 reads nothing, 1 and 2 become /dev/null before ipykernel captures them. Returns the log of
    the container, for what goes wrong until the kernel answers."""
    log = os.dup(2)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    return log


def serve(spec, listeners, outbox):
    """Never returns."""
    log = _redirect()
    code = 1
    try:
        for fd in (*listeners, outbox):
            os.set_inheritable(fd, False)  # nothing of ours in what user code starts
        _settle(spec)
        app = CoppiceApp.instance(config=_configuration(spec["key"]))
        app.take(spec["endpoints"], listeners, deliver.start(outbox, settle_in), spec["cwd"])
        app.initialize([])
        os.close(log)
        log = -1
        _run(app).end_control()
        code = 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    except BaseException:
        if log >= 0:
            os.write(log, traceback.format_exc().encode())
    _leave(code)


def _run(app):
    """Until it has ended; returns the application that did. A revived kernel comes back here, out of the
    event loop in which it was parked, and goes on in the context that its cells ran in."""
    context = None
    while True:
        try:
            context.run(app.start) if context else app.start()
            return app
        except park.Revived as r:
            state, order, fds = r.state, r.order, r.fds
        context = state.context
        app = context.run(revive.rebuild, app, state, order, fds)


def _leave(code):
    """The end of an interpreter without unwinding into the supervisor's frames below us."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    finally:
        os._exit(code & 0xFF)


def main():
    """As a program of its own: listeners at 3 to 7, what to do at 8 (start.py put them there)."""
    from coppice_kernel import start

    with os.fdopen(start.SPEC, "rb") as f:
        spec = json.load(f)
    listeners = list(range(start.FIRST_LISTENER, start.FIRST_LISTENER + len(CHANNELS)))
    spec["env"] = {}  # it has it already
    serve(spec, listeners, start.OUTBOX)


if __name__ == "__main__":
    # Under its own name, or classes here would exist twice.
    from coppice_kernel.kernel import main as named_main

    named_main()
