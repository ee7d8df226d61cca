"""Lays another state of files down in a folder, in place: staged beside it, then renamed, and put back
unless the gateway says that it counts (docs/decisions/0028). In the supervisor, in steps."""

import json
import os
import re
import stat

from coppice_kernel import entries, look, memory, names, stage

NAMES_TOLD = 400  # in a packet
ENTRIES_MAX = 2 * entries.BUDGET_FILES
FULL = 0.95  # of the container's memory, after it
MODES = ("100644", "100755", entries.LINK)
WAITS = True  # what a step says when it has nothing to do until something comes


class Refused(Exception):
    """Nothing has changed; the sentence is for people."""


def target_of(text):
    """path -> entry, checked, of the JSON of a `lay`."""
    try:
        listed = json.loads(text)["entries"]
        found = {names.unescaped(e["path"]): _checked(e) for e in listed}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Refused(f"the list of files is not one: {e}"[:300]) from e
    if len(found) != len(listed) or len(found) > ENTRIES_MAX:
        raise Refused("the list of files names one twice, or too many")
    for path in found:
        for above in names.parents(path):
            if above in found and found[above]["mode"] != entries.EMPTY_FOLDER:
                raise Refused(f"'{names.escaped(above)}' is a file and a folder")
    return found


def _checked(entry):
    """Its known fields alone, as they are compared with what is told."""
    path, mode, size = entry["path"], entry["mode"], entry.get("bytes", 0)
    if type(size) is not int or not 0 <= size < 1 << 50:
        raise ValueError(f"{path[:200]} has no size")
    if mode == entries.EMPTY_FOLDER:
        return {"path": path, "mode": mode, "bytes": 0}
    if mode not in MODES:
        raise ValueError(f"{path[:200]} has no mode")
    found = {"path": path, "mode": mode, "bytes": size}
    if "lost" in entry:
        return {**found, "lost": str(entry["lost"])}
    if mode == entries.LINK and not 0 < size <= entries.TARGET_MAX:
        raise ValueError(f"{path[:200]} leads nowhere")
    kind, digits = ("chunks", 64) if size > entries.PIECE else ("blob", 40)
    found[kind] = entry[kind]
    listed = [found[kind]] if kind == "blob" else found[kind]
    count = max(1, -(-size // entries.PIECE))
    if len(listed) != count or not all(re.fullmatch(f"[0-9a-f]{{{digits}}}", n) for n in listed):
        raise ValueError(f"{path[:200]} has not the content that it should have")
    return found


class Plan:
    """What has to move, from what is there and what shall be."""

    def __init__(self, ledger, target):
        self.ledger = ledger
        self.target = {p: e for p, e in target.items() if entries.is_kept(e)}
        self.out, self.new = [], []
        self._stays = {}  # path -> what it is, which is never removed
        self._look_at_present()
        self._look_at_target()
        self._look_at_folders()

    def _look_at_present(self):
        told = self.ledger.told or {}
        for path, row in self.ledger.rows.items():
            entry = row.entry
            if look.is_folder(row.sig):
                continue
            if entry is None or not entries.is_kept(entry):
                self._stays[path] = "is not kept"
            elif not self._is_wanted(path, entry):
                if told.get(entry["path"]) != entry:
                    raise Refused(
                        f"'{entry['path']}' was changed after it was looked at: something still writes to it"
                    )
                self.out.append(path)
        self._stays.update({p: "cannot be looked at" for p in self.ledger.beyond if p})

    def _is_wanted(self, path, entry):
        wanted = self.target.get(path)
        return wanted is not None and entries.same(wanted, entry)

    def _look_at_target(self):
        for path, entry in self.target.items():
            if entry["mode"] == entries.EMPTY_FOLDER:
                continue
            row = self.ledger.rows.get(path)
            if not (row and row.entry and entries.is_kept(row.entry) and entries.same(row.entry, entry)):
                self.new.append(path)

    def _look_at_folders(self):
        rows = self.ledger.rows
        present = {p for p, row in rows.items() if look.is_folder(row.sig)}
        wanted = {p for p, e in self.target.items() if e["mode"] == entries.EMPTY_FOLDER}
        wanted |= {above for p in self.target for above in names.parents(p)}
        held = {above for p in self._stays for above in names.parents(p)}
        held |= {p for p in self._stays if p in present}
        for path, what in self._stays.items():
            in_the_way = path in self.new or (path in wanted and path not in present)
            above = next((a for a in (path, *names.parents(path)) if a in self.new), None)
            if in_the_way or above:
                raise Refused(
                    f"'{names.escaped(path)}' {what} and would be lost: move it away, then try again"
                )
        gone = present - wanted - held
        by_depth = sorted(gone, key=lambda p: -p.count("/"))
        self.out_folders = by_depth
        self.new_folders = sorted(wanted - present, key=lambda p: p.count("/"))

    def moves(self):
        """In the order in which they are made."""
        kinds = [(stage.OUT, self.out + self.out_folders), (stage.IN, self.new_folders + self.new)]
        listed = [(kind, path) for kind, paths in kinds for path in paths]
        return [[kind, number, path] for number, (kind, path) in enumerate(listed)]


class Lay:
    """One. `tell(**fields)` says `laid`; `mapped()` gives steps that find inodes written without a trace."""

    def __init__(self, number, ledger, tell, mapped):
        self.id = number
        self.ledger = ledger
        self.tell = tell
        self.mapped = mapped
        self.came = []  # pieces of contents: (name, bytes, whether that is all; None for bytes: not to be had)
        self.is_ready = False
        self.is_over = False
        self.given_up = False  # by the gateway, before it was ready
        self._root = self._stage = None
        self._moves = []
        self._is_planned = False
        self._told_before = None

    # ---- forwards ----

    def run(self, text):
        reason = None
        try:
            yield from self._run(text)
        except Refused as e:
            reason = str(e)
        except OSError as e:
            reason = f"the files could not be laid down: {e.strerror}"
        except Exception as e:  # of ours: as it was is still right
            reason = f"the files could not be laid down: {type(e).__name__}: {e}"[:500]
        if reason:
            yield from self.put_back()
            self.tell(ready=False, reason=reason, last=True)

    def _run(self, text):
        target = target_of(text)
        self._make_folder()
        yield from stage.recover(self.ledger.folder)
        self._root = look.open_folder(self.ledger.folder)
        seen = yield from self.ledger.look()
        mapped = yield from self.mapped()
        yield from self.ledger.take(seen, self.ledger.may_differ(seen, mapped))
        plan = Plan(self.ledger, target)
        self._check_room(plan)
        self._stage = stage.Stage(self._root)
        self._moves = plan.moves()
        yield from self._fill(plan)
        self._stage.plan(self._moves)
        self._is_planned = True
        yield from self._move()
        yield from self._settle({p: target[p] for p in plan.new})
        if self.given_up:
            raise Refused("it was given up")
        self._told_before, self.ledger.told = self.ledger.told, {e["path"]: e for e in target.values()}
        self.is_ready = True
        self.tell(ready=True, last=True)

    def _make_folder(self):
        try:
            os.mkdir(self.ledger.folder, 0o755)
        except FileExistsError:
            pass
        except OSError as e:
            raise Refused(f"{self.ledger.folder} cannot be made: {e.strerror}") from e

    def _check_room(self, plan):
        need = sum(plan.target[p]["bytes"] for p in plan.new)
        place = os.fstatvfs(self._root)
        free = place.f_bavail * place.f_frsize
        if need > free:
            raise Refused(f"there is no room: {need >> 20} MiB are needed and {free >> 20} MiB are free")
        if place.f_files and place.f_favail < len(plan.new) + len(plan.new_folders) + 8:
            raise Refused("there is no room: too many files are there")
        if memory.fullness() + need / memory.limit() > FULL:
            raise Refused(f"there is no memory for it: {need >> 20} MiB are needed")

    # ---- staging ----

    def _fill(self, plan):
        """Makes all that is to be put in, under its number."""
        numbers = {path: str(number) for kind, number, path in self._moves if kind == stage.IN}
        for path in plan.new_folders:
            os.mkdir(numbers[path], 0o755, dir_fd=self._stage.new)
            yield
        places = {}  # name -> [(path, offset, size)]
        for path in plan.new:
            entry = plan.target[path]
            if entry["mode"] != entries.LINK:
                self._make_file(numbers[path], entry)
            for name, at, size in entries.contents_of(entry):
                places.setdefault(name, []).append((numbers[path], entry["mode"], at, size))
            yield
        missing = yield from self._copy_present(places)
        for begin in range(0, len(missing), NAMES_TOLD):
            told = missing[begin : begin + NAMES_TOLD]
            self.tell(ready=False, names=told, last=begin + NAMES_TOLD >= len(missing))
            yield
        yield from self._take_contents({name: places[name] for name in missing})

    def _make_file(self, number, entry):
        mode = 0o755 if entry["mode"] == "100755" else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(number, flags, mode, dir_fd=self._stage.new)
        try:
            os.fchmod(fd, mode)
            os.ftruncate(fd, entry["bytes"])
        finally:
            os.close(fd)

    def _copy_present(self, places):
        """What lies in the folder already. Returns the names of the rest."""
        found = {}
        for path, row in self.ledger.rows.items():
            if row.entry and entries.is_kept(row.entry):
                for name, at, size in entries.contents_of(row.entry):
                    if name in places:
                        found.setdefault(name, (path, row.sig, at, size))
        for name, source in found.items():
            content = entries.read_part(self._root, *source)
            if content is not None and _is_named(name, content):
                self._write(places[name], content)
            else:
                raise Refused(f"'{names.escaped(source[0])}' was changed while it was read")
            yield
        return [name for name in places if name not in found]

    def _write(self, places, content):
        for number, mode, at, size in places:
            if len(content) != size:
                raise Refused("a content has not the size that it should have")
            if mode == entries.LINK:
                if b"\0" in content:
                    raise Refused("a link leads nowhere")
                os.symlink(content, number, dir_fd=self._stage.new)
                continue
            fd = os.open(number, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._stage.new)
            try:
                if os.pwrite(fd, content, at) != size:
                    raise Refused("there is no room")
            finally:
                os.close(fd)

    def _take_contents(self, places):
        pieces = bytearray()
        while places:
            if self.given_up:
                raise Refused("it was given up")
            if not self.came:
                yield WAITS
                continue
            name, data, is_last = self.came.pop(0)
            if data is None:
                raise Refused("the content of a file is not to be had any more")
            pieces += data
            if len(pieces) > entries.PIECE:
                raise Refused("a content is too long")
            if not is_last:
                continue
            content, pieces = bytes(pieces), bytearray()
            if not _is_named(name, content):
                raise Refused("a content is not what its name says")
            if name in places:
                self._write(places.pop(name), content)
            yield

    # ---- moving ----

    def _move(self):
        for kind, number, path in self._moves:
            if self.given_up:
                raise Refused("it was given up")
            try:
                self._stage.move(kind, number, path)
            except OSError as e:
                raise Refused(f"'{names.escaped(path)}' cannot be moved: {e.strerror}") from e
            if kind == stage.OUT:
                self._check_moved(number, path)
            yield

    def _check_moved(self, number, path):
        """It is what was looked at."""
        row, number = self.ledger.rows[path], str(number)
        s = os.stat(number, dir_fd=self._stage.stash, follow_symlinks=False)
        same = look.signature(s)[:4] == row.sig[:4]
        if look.is_folder(row.sig):
            fd = os.open(number, look.DIR, dir_fd=self._stage.stash)
            try:
                same = stat.S_ISDIR(s.st_mode) and not os.listdir(fd)
            finally:
                os.close(fd)
        if not same:
            raise Refused(f"'{names.escaped(path)}' was changed meanwhile: something still writes to it")

    def _settle(self, laid=()):
        seen = yield from self.ledger.look()
        self.ledger.settle(seen, laid)

    # ---- the end ----

    def keep(self):
        """Of one that is ready: from here on it counts. What was replaced goes in steps."""
        self.is_ready = False
        self._stage.forget_plan()
        return self._clear()

    def put_back(self):
        failed = ()
        if self._stage:
            # Before that nothing was moved, and what is not staged yet looks like what was.
            moves = self._moves if self._is_planned else []
            failed = yield from self._stage.put_back(moves)
            yield from self._settle()
            if self.is_ready:
                self.ledger.told = self._told_before
            if not failed:
                self._stage.forget_plan()
        yield from self._clear(not failed)

    def _clear(self, all_of_it=True):
        if self._stage:
            self._stage.close()
            self._stage = None
            if all_of_it:
                yield from stage.clear(self._root)
        if self._root is not None:
            os.close(self._root)
            self._root = None
        self.is_ready, self.is_over = False, True


def _is_named(name, content):
    return entries.name_of(len(name) == 64, content) == name
