"""Kernels that are parked and revived, for tests: the gateway's side, and what it was told."""

import json


class Ground:
    def __init__(self, gateway, supervisor, cwd="/work"):
        self.gateway = gateway
        self.supervisor = supervisor  # its pid, as kernels see it
        self.cwd = cwd
        self.line = 0
        self.clients = []

    def start(self, **start):
        self.line += 1
        pid = self.gateway.start(self.line, cwd=self.cwd, **start)
        return self._client(pid)

    def _client(self, pid):
        client = self.gateway.client(self.line)
        client.line, client.pid = self.line, pid
        client.ready()
        self.clients.append(client)
        return client

    def run(self, client, code):
        """A cell that works; returns the msg_id of its request."""
        msg_id = client.send("shell", "execute_request", {"code": code})
        reply, _ = client.finish(msg_id)
        assert reply["status"] == "ok", reply
        return msg_id

    def fate(self, msg_id):
        """`parked` or `not_parked` of that execution."""
        while True:
            for i, m in enumerate(self.gateway.seen):
                if m["type"] in ("parked", "not_parked") and m["msg_id"] == msg_id:
                    return self.gateway.seen.pop(i)
            self.gateway.seen.append(self.gateway.receive())

    def park(self, client, code):
        found = self.fate(self.run(client, code))
        assert found["type"] == "parked", found
        return {**found, **json.loads(found["data"])}

    def refusal(self, client, code):
        found = self.fate(self.run(client, code))
        assert found["type"] == "not_parked", found
        return found["reason"]

    def revive(self, park, **more):
        self.line += 1
        found = self.gateway.revive(self.line, park["park"], **more)
        assert found.get("digest") == park["digest"], found
        client = self._client(None)
        client.told = found
        return client

    def settle(self):
        """Until what was sent is heard, and what was said until then is `seen`."""
        self.gateway.send("signal", line=9999, signal=2)
        self.gateway.expect("signalled", line=9999)

    def release_all(self):
        """Every park that was told of until now."""
        self.settle()
        for m in [m for m in self.gateway.seen if m["type"] == "parked"]:
            self.gateway.seen.remove(m)
            self.gateway.send("release", park=m["park"])

    def lost(self, revived):
        return {(loss["name"], loss["kind"]) for loss in revived.told["lost"]}

    def kill(self, client):
        client.close()
        self.clients.remove(client)
        return self.gateway.kill(client.line)

    def end_lines(self):
        for client in self.clients:
            client.close()
            self.gateway.send("kill", line=client.line)
        self.clients.clear()
        self.settle()
        self.gateway.seen.clear()
