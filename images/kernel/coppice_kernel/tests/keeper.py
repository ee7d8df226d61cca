"""The gateway's part in working files, in Python, for tests: takes Changes in and the contents that it
lacks, and has states laid down. Checks what it is told as the gateway does."""

import base64
import hashlib
import json
from urllib.parse import unquote_to_bytes

PIECE = 46080
CHUNK = 1 << 20


def name_of(content, is_chunk):
    if is_chunk:
        return hashlib.blake2b(content, digest_size=32).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def names_in(entry):
    return [entry["blob"]] if "blob" in entry else entry.get("chunks", [])


class Keeper:
    def __init__(self, gateway):
        self.gateway = gateway
        self.contents = {}
        self.now = {}  # path -> entry, as told last
        self.lays = 0
        self.line = 0

    # ---- Changes ----

    def hear(self, msg_id):
        """The Change of that id, before anything is asked."""
        data = b""
        while True:
            m = self.gateway.expect("files")
            assert (m["msg_id"], m["offset"]) == (msg_id, len(data))
            data += base64.b64decode(m["data"], validate=True)
            if len(data) == m["size"]:
                self.line = m["line"]
                return json.loads(data)

    def apply(self, change):
        if change["full"]:
            self.now = {}
        for path in change["removed"]:
            del self.now[path]
        for entry in change["changed"]:
            assert len({"blob", "chunks", "lost"} & set(entry)) == (entry["mode"] != "40000"), entry
            self.now[entry["path"]] = entry

    def want(self, msg_id, names, last=True):
        """Their contents; None: not to be had."""
        self.gateway.send("want", line=self.line, msg_id=msg_id, names=names, last=last)
        return {name: self._content(name) for name in names}

    def _content(self, name):
        data = b""
        while True:
            m = self.gateway.expect("content")
            assert m["name"] == name
            if m["size"] == -1:
                return None
            assert m["offset"] == len(data)
            data += base64.b64decode(m["data"], validate=True)
            if len(data) == m["size"]:
                assert name_of(data, len(name) == 64) == name
                return data

    def take(self, msg_id):
        """The Change, with all contents that are not there yet."""
        change = self.hear(msg_id)
        self.apply(change)
        names = {n: None for e in change["changed"] for n in names_in(e) if n not in self.contents}
        found = self.want(msg_id, list(names))
        assert None not in found.values(), found
        self.contents.update(found)
        return change

    def take_all(self, msg_id):
        """Likewise, but what cannot be had any more stays away: the folder is being changed."""
        change = self.hear(msg_id)
        self.apply(change)
        names = {n: None for e in change["changed"] for n in names_in(e) if n not in self.contents}
        found = self.want(msg_id, list(names))
        self.contents.update({n: content for n, content in found.items() if content is not None})
        return change

    def take_until(self, msg_id):
        """The Changes up to that one."""
        found = []
        while True:
            first = self.gateway.expect("files")
            self.gateway.seen.insert(0, first)
            found.append(self.take(first["msg_id"]))
            if first["msg_id"] == msg_id:
                return found

    def scan(self, line, name="look", **more):
        self.gateway.send("scan", line=line, id=name, **more)
        return self.take(name)

    # ---- laying ----

    def lay(self, folder, state, keep=None):
        """Has the entries laid down: the answer, `laid` that is ready or has a reason, with the names that
        were sent as `sent`. `keep`: the end, at once."""
        self.lays += 1
        name = f"lay-{self.lays}"
        text = json.dumps({"entries": list(state.values())}).encode()
        for at in range(0, len(text), PIECE):
            piece = base64.b64encode(text[at : at + PIECE]).decode()
            self.gateway.send("lay", id=name, folder=folder, offset=at, size=len(text), data=piece)
        sent = []
        while True:
            m = self.gateway.expect("laid", id=name)
            if m["ready"] or m.get("reason"):
                break
            sent += m["names"]
            if m["last"]:
                for content in sent:
                    self.send(name, content)
        if m["ready"]:
            self.before, self.now = self.now, dict(state)
            if keep is not None:
                self.end(name, keep)
        return {**m, "sent": sent}

    def send(self, lay, name):
        content = self.contents[name]
        for at in range(0, max(1, len(content)), PIECE):
            piece = base64.b64encode(content[at : at + PIECE]).decode()
            self.gateway.send("lay_content", id=lay, name=name, offset=at, size=len(content), data=piece)

    def end(self, lay, keep):
        self.gateway.send("lay_end", id=lay, keep=keep)
        if not keep:
            self.now = self.before


def raw(path):
    """The bytes of a name as it is in the folder."""
    return b"/".join(unquote_to_bytes(c) for c in path.split("/"))
