"""A language model's server whose words a test writes: the real protocol (chat completions, streamed
or not), with every way in which such servers fail."""

import json
import os
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answer:
    """One answer: text, in pieces; or a fault.

    raw: the body as it is; endless: a block of bytes, again and again; status with endless: its
    body has no end; stall: "before" or "amid" the answer nothing comes any more; cut: it ends
    amid, "reset" by a RST; old: `stream_options` are refused; before: called before it is given."""

    def __init__(self, text="", *, status=200, streams=True, cut=False, tool=None, error=None,
                 piece=7, endless=None, raw=None, stall=None, usage=None, old=False, finish="stop",
                 before=None):
        self.text, self.status, self.streams, self.cut = text, status, streams, cut
        self.tool, self.error, self.piece, self.endless = tool, error, piece, endless
        self.before = before
        self.raw, self.stall, self.usage, self.old, self.finish = raw, stall, usage, old, finish


class ModelServer:
    def __init__(self, context=None):
        """context: of TLS."""
        self.answers, self.asked, self.keys = [], [], []
        self.gate, self.closing = threading.Event(), threading.Event()
        self.gate.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                server.serve(self)

            def log_message(self, *_):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a handshake that was broken off

        self.http = Quiet(("127.0.0.1", 0), Handler)
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.gate.set()
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()

    def will_say(self, *answers):
        self.answers += [a if isinstance(a, Answer) else Answer(a) for a in answers]

    def serve(self, call):
        body = json.loads(call.rfile.read(int(call.headers["Content-Length"])))
        self.asked.append(body)
        self.keys.append(call.headers.get("Authorization"))
        self.gate.wait(60)
        answer = self.answers.pop(0) if self.answers else Answer(status=500)
        if answer.before:
            answer.before()
        if answer.old and "stream_options" in body:
            self.answers.insert(0, answer)
            answer = Answer(status=400)
        try:
            self.answer(call, answer, body)
        except OSError:
            pass  # the gateway has left

    def answer(self, call, answer, body):
        assert call.path == "/v1/chat/completions", call.path
        if answer.stall == "before":
            self.closing.wait(60)
        elif answer.endless or answer.raw is not None:
            self.send_raw(call, answer)
        elif answer.status != 200:
            self.send(call, answer.status, {"error": {"message": "as the test says"}})
        elif not answer.streams or not body.get("stream"):
            self.send(call, 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": {
                "role": "assistant", "content": answer.text}}]})
        else:
            self.stream(call, answer, body)

    def send(self, call, status, tree):
        data = json.dumps(tree).encode()
        call.send_response(status)
        call.send_header("Content-Type", "application/json")
        call.send_header("Content-Length", str(len(data)))
        call.end_headers()
        call.wfile.write(data)

    def begin(self, call, status=200):
        call.send_response(status)
        call.send_header("Content-Type", "text/event-stream")
        call.send_header("Connection", "close")
        call.end_headers()
        call.close_connection = True

    def send_raw(self, call, answer):
        self.begin(call, answer.status)
        call.wfile.write(answer.raw or b"")
        while answer.endless and not self.closing.is_set():
            call.wfile.write(answer.endless)

    def stream(self, call, answer, body):
        self.begin(call)

        def send(tree):
            call.wfile.write(b"data: " + json.dumps(tree).encode() + b"\n\n")
            call.wfile.flush()

        def chunk(delta, finish=None):
            send({"object": "chat.completion.chunk",
                  "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        chunk({"role": "assistant"})
        call.wfile.write(b": a comment\n\n")
        for i in range(0, len(answer.text), answer.piece):
            chunk({"content": answer.text[i:i + answer.piece]})
        if answer.tool:
            chunk({"tool_calls": [{"index": 0, "function": {"name": answer.tool[0],
                                                            "arguments": ""}}]})
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": answer.tool[1]}}]})
        if answer.stall == "amid":
            self.closing.wait(60)
        if answer.error:
            send({"error": {"message": answer.error}})
        if answer.cut == "reset":
            call.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(call.connection.detach())
        if answer.cut or answer.error:
            return
        chunk({}, answer.finish)
        if answer.usage and body.get("stream_options", {}).get("include_usage"):
            send({"object": "chat.completion.chunk", "choices": [], "usage": {
                "prompt_tokens": answer.usage[0], "completion_tokens": answer.usage[1],
                "total_tokens": sum(answer.usage)}})
        call.wfile.write(b"data: [DONE]\n\n")
