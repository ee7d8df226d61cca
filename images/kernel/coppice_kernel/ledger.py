"""What the supervisor knows of one working folder: of each file its signature and its entry, and what was
told of it to the gateway last (docs/decisions/0028)."""

import os
import time
from typing import NamedTuple

from coppice_kernel import entries, look, names

LOST_TOLD = 20
CHANGE_MAX = 3_600_000  # bytes of a Change: the gateway takes 4 MiB
ENTRY_BYTES, CHUNK_BYTES = 140, 67  # of an entry without its path, at most
COPIED_MAX = 64 << 20  # of one Change, besides what the kernel copied


class Row(NamedTuple):
    sig: tuple
    entry: dict | None  # None: it is no entry, or a folder
    at: int  # when its content was looked at


class Ledger:
    """Of a folder. `told`: path -> entry; None: the next Change is full."""

    def __init__(self, folder):
        self.folder = folder
        self.rows = {}
        self.beyond = {}
        self.told = None
        self.untold = 0  # files that the last list had no room for

    # ---- taking a look in ----

    def look(self):
        """A look of the supervisor's own; in steps. The folder may be missing: then it is empty."""
        seen = look.Look()
        try:
            fd = look.open_folder(self.folder)
        except OSError as e:
            seen.is_closed(e)
            return seen
        try:
            yield from seen.steps(fd)
        finally:
            os.close(fd)
        return seen

    def may_differ(self, seen, mapped=()):
        """Paths whose content must be read again though the signature is the same."""
        return {
            path
            for path, sig in seen.rows.items()
            if (row := self.rows.get(path)) and row.entry and row.sig == sig
            and (sig[4] >= row.at - look.RACY_NS or sig[1] in mapped)
        }

    def take(self, seen, changed, given=None, keep=None):
        """Brings the rows to that look, in steps. `changed`: to be read even if the signature is the same;
        `given`: path -> a reader of its content in pieces; `keep(name, content)`: is shown what is read
        from the folder."""
        given, keep = given or {}, keep or (lambda *_: None)
        over, rows = entries.over(seen.rows), {}
        try:
            root = look.open_folder(self.folder)
        except OSError:
            root = None
        try:
            for path, sig in seen.rows.items():
                known = self._known(path, sig, over, changed)
                if known is None:
                    reader = given.get(path)
                    known = yield from self._read(root, path, sig, over.get(path), reader, keep)
                    known = Row(sig, known, seen.at)
                rows[path] = known
        finally:
            if root is not None:
                os.close(root)
        unseen = {p: r for p, r in self.rows.items() if p not in seen.rows and seen.may_hide(p)}
        rows = {**unseen, **rows}
        self.rows, self.beyond = rows, seen.beyond

    def _known(self, path, sig, over, changed):
        """Its row as it is, or None: it must be made."""
        row = self.rows.get(path)
        if look.is_folder(sig) or entries.no_entry(sig):
            return Row(sig, None, 0)
        if path in over:
            return Row(sig, entries.lost(path, sig, over[path]), 0)
        if row and row.sig == sig and row.entry and entries.is_kept(row.entry) and path not in changed:
            return row
        return None

    def _read(self, root, path, sig, over, reader, keep):
        if reader:
            return (yield from entries.named(path, sig, reader))
        try:
            if root is None:
                raise FileNotFoundError(2, "the folder is gone")
            if look.is_link(sig):
                target = look.read_link(root, path)
                entry = yield from entries.named(path, sig, lambda size: target)
                keep(entry.get("blob"), target)
                return entry
            fd = look.open_file(root, path)
        except OSError as e:
            return entries.lost(path, sig, f"it cannot be read: {e.strerror}")
        try:
            return (yield from self._read_file(fd, path, sig, keep))
        finally:
            os.close(fd)

    @staticmethod
    def _read_file(fd, path, sig, keep):
        moved = entries.lost(path, sig, entries.MOVED)
        if look.signature(os.fstat(fd)) != sig:
            return moved

        def read(size):
            content = os.read(fd, size) if size else b""
            keep(entries.name_of(sig[2] > entries.PIECE, content), content)
            return content

        try:
            entry = yield from entries.named(path, sig, read)
            return entry if look.signature(os.fstat(fd)) == sig else moved
        except OSError as e:
            return entries.lost(path, sig, f"it cannot be read: {e.strerror}")

    # ---- telling ----

    def entries(self):
        """escaped path -> entry of all that is there; empty folders too."""
        found = {row.entry["path"]: row.entry for row in self.rows.values() if row.entry}
        full = {above for p in (*self.rows, *self.beyond) for above in [p.rpartition("/")[0]] if above}
        for path, row in self.rows.items():
            if look.is_folder(row.sig) and path not in full and path not in self.beyond:
                name = names.escaped(path)
                found[name] = {"path": name, "mode": entries.EMPTY_FOLDER, "bytes": 0}
        return self._tellable(found)

    def _tellable(self, found):
        """Without paths that are too long, and what would make the list too long."""
        told, left = {}, CHANGE_MAX
        for path in sorted(found):
            size = len(path.encode())
            left -= size + ENTRY_BYTES + CHUNK_BYTES * len(found[path].get("chunks", ()))
            if size <= names.PATH_MAX and left > 0:
                told[path] = found[path]
        self.untold = sum(len(p.encode()) <= names.PATH_MAX for p in found) - len(told)
        return told

    def no_entries(self):
        found = [
            {"path": names.escaped(path) if path else "", "reason": reason}
            for path, reason in self.beyond.items()
        ]
        for path, row in self.rows.items():
            reason = entries.no_entry(row.sig)
            if reason is None and len(names.escaped(path).encode()) > names.PATH_MAX:
                reason = look.TOO_LONG
            if reason:
                found.append({"path": names.escaped(path)[: names.PATH_MAX], "reason": reason})
        if self.untold:
            found.append({"path": "", "reason": f"{self.untold:,} files more than can be told, by their names"})
        found.sort(key=lambda f: f["path"])
        if len(found) > LOST_TOLD:
            more = len(found) - LOST_TOLD
            found[LOST_TOLD:] = [{"path": "", "reason": f"and {more:,} more that are not kept"}]
        return found

    def change(self):
        """From what was told last; it is told now."""
        now, before = self.entries(), self.told or {}
        found = {
            "full": self.told is None,
            "changed": [now[p] for p in sorted(now) if now[p] != before.get(p)],
            "removed": sorted(p for p in before if p not in now),
            "lost": self.no_entries(),
        }
        self.told = now
        return found

    def sources(self, change):
        """name -> where each content of a Change lies."""
        paths = {row.entry["path"]: path for path, row in self.rows.items() if row.entry}
        found = {}
        for entry in change["changed"]:
            path = paths.get(entry["path"])
            if path is None or not entries.is_kept(entry):
                continue
            for name, at, size in entries.contents_of(entry):
                found.setdefault(name, entries.Source(self.folder, path, self.rows[path].sig, at, size))
        return found

    def copied(self, change, given):
        """The same of what the kernel copied: path -> (carrier, place)."""
        paths = {names.escaped(path): path for path in given}
        found = {}
        for entry in change["changed"]:
            if entry["path"] in paths and entries.is_kept(entry):
                carrier, begin = given[paths[entry["path"]]]
                for name, at, size in entries.contents_of(entry):
                    found[name] = entries.Copied(carrier, begin + at, size)
        return found

    # ---- after files were laid ----

    def settle(self, seen, laid=()):
        """The rows after a lay, or after it was put back. What was moved has another time of change and is
        read again some time, but for what is new: `laid`, path -> entry."""
        rows, now = {}, time.time_ns()
        for path, sig in seen.rows.items():
            before = self.rows.get(path)
            if path in laid and not look.is_folder(sig):
                rows[path] = Row(sig, laid[path], now)
            elif look.is_folder(sig) or entries.no_entry(sig):
                rows[path] = Row(sig, None, 0)
            elif before and before.sig == sig:
                rows[path] = before
        self.rows, self.beyond = rows, seen.beyond
