"""The supervisor's side of working files (docs/decisions/0028): tells Changes and hands over contents, looks
when it is asked to, and has other states laid down.

One thing after the other, each in steps between which the supervisor does what else there is to do. What
it holds is bounded: what kernels hand over waits with them, and a Change's contents are copied up to a
limit and read from the folder again beyond it.
"""

import base64
import json
import os
import re
import stat
import time
import traceback
from collections import deque

from coppice_kernel import ctl, entries, handing, laying, ledger, maps, stage

SLICE_S = 0.004  # of work before the supervisor looks for something else
WANT_S = 10.0  # a Change that nobody asks about is given up
AGAIN_S = 2.0  # likewise one that is told again to a gateway that came back
WAITING_MAX = 32  # things to do; kernels wait with what they have
LEDGERS_MAX = 8  # of folders that no line works in any more
LIST_MAX = 16 << 20  # bytes of a lay's list
CLAIMS_MAX = 20000  # names that are asked for and not sent
WORK = "/work"
BESIDE = re.compile(r"/branches/[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


class Work:
    """Something to be done: `begin()` gives its steps. `lasts`: also without a gateway; `dropped()` is
    called if it is never begun."""

    def __init__(self, begin, lasts=False, dropped=None):
        self.begin, self.lasts, self.dropped = begin, lasts, dropped


class Change:
    """One that is being told."""

    def __init__(self, line, msg_id, patience_s=WANT_S, is_full=False):
        self.line, self.msg_id, self.patience_s = line, msg_id, patience_s
        self.is_full = is_full  # whatever was told before
        self.sources = {}  # name -> entries.Source or entries.Copied
        self.wanted = deque()
        self.is_last = False  # what was wanted


class Copies:
    """What was read of the folder, kept for a moment: the next cell may change it."""

    def __init__(self):
        self.carrier = os.memfd_create("read", os.MFD_CLOEXEC)
        self.sources = {}
        self._end = 0

    def keep(self, name, content):
        if name and name not in self.sources and self._end + len(content) <= ledger.COPIED_MAX:
            if os.write(self.carrier, content) == len(content):
                self.sources[name] = entries.Copied(self.carrier, self._end, len(content))
                self._end += len(content)

    def close(self):
        os.close(self.carrier)


class Filing:
    def __init__(self, tell, has_room, lines):
        """`tell(name, **fields)`: to the gateway that is connected now; `has_room()`: it reads;
        `lines`: number -> supervise.Child."""
        self._tell = tell
        self._has_room = has_room
        self._lines = lines
        self.is_wanted = False  # by the gateway
        self._ledgers = {}
        self._todo = deque()  # of Work
        self._work = None  # the one that is being done
        self._steps = None
        self._waits = False
        self._is_stepping = self._hung_up = False
        self._change = None
        self._lays = {}  # id -> laying.Lay
        self._lists = {}  # id of a lay that still comes -> [folder, bytes]
        self._handed = {}  # line -> msg_id of its last Change
        for folder in (WORK, *_branches()):
            self._todo.append(Work(lambda folder=folder: _recovered(folder), lasts=True))
        self.verbs = {
            "want": self._on_want,
            "scan": self._on_scan,
            "lay": self._on_lay,
            "lay_content": self._on_lay_content,
            "lay_end": self._on_lay_end,
        }

    # ---- doing it ----

    @property
    def is_busy(self):
        """There is something to be done at once."""
        return bool(self._todo or self._steps) and not (self._steps and self._waits)

    @property
    def is_active(self):
        return bool(self._todo or self._steps)

    @property
    def is_full(self):
        return len(self._todo) >= WAITING_MAX

    def work(self):
        end = time.monotonic() + SLICE_S
        while self.is_active:
            self._step()
            if self._hung_up:
                self._hung_up = False
                self._give_up()
            if self._waits or time.monotonic() > end:
                return

    def _step(self):
        if self._steps is None:
            self._work = self._todo.popleft()
            self._steps = self._work.begin()
        self._is_stepping = True
        try:
            self._waits = next(self._steps) is laying.WAITS
        except StopIteration:
            self._steps, self._waits = None, False
        except Exception:  # a folder's content ends nothing but what was done with it
            traceback.print_exc()
            self._steps, self._waits, self._change = None, False, None
        finally:
            self._is_stepping = False

    def _wait_for_room(self):
        while not self._has_room():
            yield laying.WAITS

    # ---- gateways ----

    def on_welcome(self, wanted, lays_kept=()):
        self.is_wanted = wanted
        # First of all: what follows finds the folder that belongs to the kernels' state.
        for number in list(self._lays):
            self._end_ready(number, number in lays_kept)
        if not wanted:
            self._handed.clear()
        for line, msg_id in self._handed.items():
            # It may not have been heard whole.
            if line in self._lines:
                self._scan_later(line, msg_id, AGAIN_S)

    def on_hang_up(self):
        """Of the gateway: what it was to hear is given up, and what it was laying is put back. A lay that
        is ready stays: whether it is part of the kernel's state, the next gateway knows."""
        self.is_wanted = False
        self._hung_up = self._is_stepping  # a step noticed it: not under its feet
        if not self._hung_up:
            self._give_up()

    def _give_up(self):
        if self._steps and not self._work.lasts:
            self._steps.close()
            self._steps = None
        self._waits, self._change = False, None
        todo, self._todo = self._todo, deque()
        for work in todo:
            if work.lasts:
                self._todo.append(work)
            elif work.dropped:
                work.dropped()
        ready = {number: lay for number, lay in self._lays.items() if lay.is_ready}
        for lay in self._lays.values():
            if lay.is_ready:
                lay.told_before = None  # to another gateway
            else:
                self._todo.append(Work(lay.put_back, lasts=True))
        self._todo.append(Work(self._forget_told, lasts=True))
        self._lays = ready
        self._lists.clear()

    def _forget_told(self):
        for found in self._ledgers.values():
            found.told = None
        yield

    def ledger_of(self, folder):
        if folder not in self._ledgers and len(self._ledgers) >= LEDGERS_MAX:
            used = {child.folder for child in self._lines.values()} | {WORK}
            used |= {lay.ledger.folder for lay in self._lays.values()}
            # One that is wanted again is told whole.
            self._ledgers = {f: book for f, book in self._ledgers.items() if f in used}
        return self._ledgers.setdefault(folder, ledger.Ledger(folder))

    def forget_line(self, number):
        self._handed.pop(number, None)

    def forget_folder(self, folder):
        """It is gone: one of that name is told whole."""
        self._ledgers.pop(folder, None)

    def is_laid(self, folder):
        """Another state lies there that does not count yet."""
        return any(lay.is_ready and lay.ledger.folder == folder for lay in self._lays.values())

    # ---- Changes ----

    def on_handed(self, child, message, carrier):
        """What a kernel handed over; the descriptor is ours now."""
        msg_id = message["msg_id"]
        self._handed[child.number] = msg_id

        def dropped():
            os.close(carrier)
            self._taken(child)

        if self.is_wanted:
            self._todo.append(Work(lambda: self._tell_handed(child, msg_id, carrier), dropped=dropped))
        else:
            dropped()

    @staticmethod
    def _taken(child):
        if child.outlet:
            child.outlet.taken += 1
            count = str(child.outlet.taken)
            child.outlet.ack(ctl.encode("ack", line=child.number, channel=handing.CHANNEL, msg_id=count))

    def _tell_handed(self, child, msg_id, carrier):
        copies = Copies()
        try:
            found, book = handing.Handed(carrier), self.ledger_of(child.folder)
            readers = {path: _reader(carrier, at) for path, (at, _) in found.given.items()}
            changed = set(found.given) | found.read if found.based else book.may_differ(found.look)
            yield from book.take(found.look, changed, readers, copies.keep)
            given = {path: (carrier, at) for path, (at, _) in found.given.items()}
            yield from self._tell_change(Change(child.number, msg_id), book, copies, given)
        except handing.Unfit:
            yield from self._tell_look(Change(child.number, msg_id), child.folder, copies)
        finally:
            copies.close()
            os.close(carrier)
            self._taken(child)

    def _on_scan(self, message):
        self._scan_later(message["line"], message["id"], is_full=message.get("full") is True)

    def _scan_later(self, line, msg_id, patience_s=WANT_S, is_full=False):
        child = self._lines.get(line)
        change = Change(line, msg_id, patience_s, is_full)
        self._todo.append(Work(lambda: self._scan(change, child.folder if child else None)))

    def _scan(self, change, folder):
        copies = Copies()
        try:
            yield from self._tell_look(change, folder, copies)
        finally:
            copies.close()

    def _tell_look(self, change, folder, copies):
        book = self.ledger_of(folder) if folder and folder != "/" else None
        if book:
            seen = yield from book.look()
            mapped = yield from maps.of_all(folder)
            yield from book.take(seen, book.may_differ(seen, mapped), keep=copies.keep)
        yield from self._tell_change(change, book, copies)

    def _tell_change(self, change, book, copies, given=None):
        if book and change.is_full:
            book.told = None
        told = book.change() if book else {"full": False, "changed": [], "removed": [], "lost": []}
        if book:
            change.sources = {**book.sources(told), **copies.sources, **book.copied(told, given or {})}
        self._change = change
        data = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        for at in range(0, len(data), ctl.PIECE_BYTES):
            yield from self._wait_for_room()
            piece = base64.b64encode(data[at : at + ctl.PIECE_BYTES]).decode()
            self._tell("files", line=change.line, msg_id=change.msg_id, offset=at, size=len(data), data=piece)
            yield
        yield from self._send_wanted(change)
        self._change = None

    def _send_wanted(self, change):
        until = time.monotonic() + change.patience_s
        while True:
            while change.wanted:
                yield from self._send_content(change, change.wanted.popleft())
                until = time.monotonic() + WANT_S
            if change.is_last or time.monotonic() > until:
                return
            yield laying.WAITS

    def _send_content(self, change, name):
        source = change.sources.get(name)
        content = source.read() if source else None
        if content is None or entries.name_of(len(name) == 64, content) != name:
            yield from self._wait_for_room()
            self._tell("content", name=name, offset=0, size=-1, data="")
            return
        for at in range(0, max(1, len(content)), ctl.PIECE_BYTES):
            yield from self._wait_for_room()
            piece = base64.b64encode(content[at : at + ctl.PIECE_BYTES]).decode()
            self._tell("content", name=name, offset=at, size=len(content), data=piece)
            yield

    def _on_want(self, message):
        change = self._change
        if change is None or change.msg_id != message["msg_id"] or len(change.wanted) > CLAIMS_MAX:
            change = None
        elif message["last"]:
            change.is_last = True
        if change:
            change.wanted.extend(message["names"])
            self._waits = False
            return
        late = Change(message["line"], message["msg_id"])  # given up meanwhile: nothing is to be had
        late.wanted.extend(message["names"])
        late.is_last = True
        if late.wanted:
            self._todo.append(Work(lambda: self._send_wanted(late)))

    # ---- laying ----

    def _folder_of(self, text):
        known = text != "/" and any(child.folder == text for child in self._lines.values())
        return known or text == WORK or BESIDE.fullmatch(text)

    def _on_lay(self, message):
        number, at, size = message["id"], message["offset"], message["size"]
        if at == 0:
            reason = self._why_not(number, message["folder"], size)
            if reason:
                self._tell("laid", id=number, ready=False, reason=reason, last=True)
                return
            self._lists[number] = [message["folder"], bytearray()]
        coming = self._lists.get(number)
        if coming is None:
            return  # it was refused
        data = _decoded(message["data"])
        if at != len(coming[1]) or data is None or at + len(data) > size:
            del self._lists[number]
            self._tell("laid", id=number, ready=False, reason="its pieces do not follow each other", last=True)
            return
        coming[1] += data
        if len(coming[1]) == size:
            self._lay_later(number, *self._lists.pop(number))

    def _why_not(self, number, folder, size):
        if not 0 <= size <= LIST_MAX:
            return "the list of files is too long"
        if not self._folder_of(folder):
            return f"{folder[:200]} is no folder of this container"
        busy = [lay.ledger.folder for lay in self._lays.values()] + [f for f, _ in self._lists.values()]
        if folder in busy or number in self._lays or number in self._lists:
            return f"files are being laid down in {folder} already"
        return None

    def _lay_later(self, number, folder, text):
        def tell(**fields):
            self._tell("laid", id=number, **fields)
            if lay.is_over:
                self._lays.pop(number, None)

        lay = laying.Lay(number, self.ledger_of(folder), tell, lambda: maps.of_all(folder))
        self._lays[number] = lay
        self._todo.append(Work(lambda: lay.run(bytes(text))))

    def _on_lay_content(self, message):
        lay = self._lays.get(message["id"])
        if lay is None or lay.is_ready:
            return
        data = _decoded(message["data"])
        if message["size"] < 0 or data is None:
            lay.came.append((message["name"], None, True))
        else:
            is_last = message["offset"] + len(data) >= message["size"]
            lay.came.append((message["name"], data, is_last))
        self._waits = False

    def _on_lay_end(self, message):
        self._lists.pop(message["id"], None)
        lay = self._lays.get(message["id"])
        if lay is None:
            return
        if lay.is_ready:
            self._end_ready(message["id"], message["keep"])
        else:
            lay.given_up = True
            self._waits = False

    def _end_ready(self, number, keep):
        lay = self._lays.pop(number)
        self._todo.append(Work(lay.keep if keep else lay.put_back, lasts=True))


def _decoded(data):
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


def _reader(carrier, at):
    """Reads on from there."""

    def read(size):
        nonlocal at
        content = os.pread(carrier, size, at)
        at += len(content)
        return content

    return read


def _branches():
    try:
        with os.scandir("/branches") as found:
            return [e.path for e in found if stat.S_ISDIR(e.stat(follow_symlinks=False).st_mode)]
    except OSError:
        return []


def _recovered(folder):
    try:
        yield from stage.recover(folder)
    except OSError:
        return  # said to whoever lays something there
