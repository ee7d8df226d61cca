"""What stands between a gateway and the container engine, so that the engine can go away for one
gateway alone: a unix socket of our own that passes bytes on to the real one."""

import contextlib
import os
import selectors
import socket
import threading

import engine


class EngineProxy:
    """stop(): calls that are under way are cut, new ones are refused. start(): as before."""

    def __init__(self, path):
        self.path, self.thread = path, None

    def start(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.ender, ended = socket.socketpair()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.selector.register(ended, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self._serve, args=(ended,), daemon=True)
        self.thread.start()
        return self

    def stop(self):
        if not self.thread:
            return
        self.ender.close()
        self.thread.join()
        self.thread = None

    def connections(self):
        return (len(self.selector.get_map()) - 2) // 2

    def _serve(self, ended):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is ended:
                    self._close_all()
                    return
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj.fileno() >= 0:  # not closed with its other end just now
                    self._pass_on(key.fileobj, key.data)

    def _accept(self):
        client, _ = self.listener.accept()
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.connect(engine.SOCKET)
        self.selector.register(client, selectors.EVENT_READ, server)
        self.selector.register(server, selectors.EVENT_READ, client)

    def _pass_on(self, source, to):
        try:
            data = source.recv(65536)
            to.sendall(data)
        except OSError:
            data = b""
        if not data:
            for s in (source, to):
                self.selector.unregister(s)
                s.close()

    def _close_all(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
        os.unlink(self.path)
