"""A git server of its own on loopback: git http-backend, with or without a password."""

import base64
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class GitServer:
    """Serves, and takes pushes into, the repositories below a folder."""

    def __init__(self, folder, password=None):
        self.folder, self.password, self.heads = str(folder), password, []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.serve(self)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def serve(self, call):
        self.heads.append(dict(call.headers))
        wanted = base64.b64encode(f"any:{self.password}".encode()).decode()
        if self.password and call.headers.get("Authorization") != f"Basic {wanted}":
            call.send_response(401)
            call.send_header("WWW-Authenticate", "Basic realm=\"git\"")
            call.send_header("Content-Length", "0")
            call.end_headers()
            return
        path, _, query = call.path.partition("?")
        body = self.body(call)
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.folder, "GIT_HTTP_EXPORT_ALL": "1",
               "REMOTE_USER": "any", "REQUEST_METHOD": call.command, "PATH_INFO": path,
               "QUERY_STRING": query, "CONTENT_TYPE": call.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)), "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
               "HTTP_CONTENT_ENCODING": call.headers.get("Content-Encoding", "")}
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True,
                              timeout=60, check=False)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        lines = [line.partition(b": ") for line in head.split(b"\r\n")]
        status = next((int(v.split()[0]) for k, _, v in lines if k == b"Status"), 200)
        call.send_response(status)
        for key, _, value in lines:
            if key not in (b"Status", b""):
                call.send_header(key.decode(), value.decode())
        call.send_header("Content-Length", str(len(rest)))
        call.end_headers()
        call.wfile.write(rest)

    @staticmethod
    def body(call):
        if call.headers.get("Transfer-Encoding") != "chunked":
            return call.rfile.read(int(call.headers.get("Content-Length", 0)))
        body = b""
        while size := int(call.rfile.readline(), 16):
            body += call.rfile.read(size)
            call.rfile.readline()
        call.rfile.readline()
        return body
