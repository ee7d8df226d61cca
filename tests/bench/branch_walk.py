"""One walk of one side through one state: cells with pauses, undo, back to an ancestor, two lines,
the whole state written in place. Each figure goes into `found` as it comes, so that what fails later
does not take them away."""

import time

from branch_sides import CellFailed, Told

STEPS = 5  # of two cells each


class Walk:
    def __init__(self, side, state, limit_s):
        self.side, self.state, self.found = side, state, {}
        self.ends = time.monotonic() + limit_s

    def note(self, what, ms):
        self.found.setdefault(what, []).append(ms)
        if time.monotonic() > self.ends:
            raise TimeoutError(f"gave up after {what}: it took too long altogether")

    def cell(self, what, code):
        """A cell with what it takes to keep its state."""
        self.note(what, self.side.cell(code) + self.side.checkpoint())

    def build(self):
        self.cell("build", f"{self.state.build}\ntick = 0")
        self.side.settle()
        return self.side.mark()

    def steps(self):
        for _ in range(STEPS):
            self.cell("after a pause", f"{self.state.touch}; tick += 1")
            self.cell("in a burst", "tick += 1")
            self.side.settle()
        return self.side.mark()

    def asked(self, expression):
        """An error is an answer here: the way back seemed to have worked."""
        try:
            return self.side.answer(expression)
        except CellFailed as e:
            return str(e)

    def look(self):
        return self.asked(f"({self.state.look}, tick)")

    def same(self, wanted, got):
        self.found.setdefault("right", []).append(got == wanted)
        if got != wanted:
            self.found.setdefault("wrong", []).append(f"{got} instead of {wanted}"[:200])

    def back(self, root, end, whole):
        """whole: what the state's check says where it was built."""
        self.cell("after a pause", "tick += 1")
        self.note("undo 1", self.side.undo(end))
        self.cell("first cell", "tick += 0")
        self.same(str(2 * STEPS), self.asked("tick"))
        self.note("back 10", self.side.checkout(root))
        self.cell("first cell", "tick += 0")
        self.same(whole, self.asked(self.state.check))
        self.side.checkout(end)
        if self.side.chill():
            self.note("back 10, cold", self.side.checkout(root))

    def lines(self, root, end, share):
        """A second line from the root, which differs by that share; then from tip to tip."""
        self.side.checkout(root)
        self.cell("change", f"{self.state.change.format(share=share)}\ntick = -1")
        self.side.settle()
        tip, here = self.side.mark(), self.look()
        what = f"switch {share:.0%}"
        self.note(what, self.side.checkout(end))
        there = self.look()
        self.note(what, self.side.checkout(tip))
        self.same(here, self.look())
        self.note(what, self.side.checkout(end))
        self.same(there, self.look())

    def write(self):
        self.side.settle()
        self.cell("write", self.state.write)
        self.cell("write again", self.state.write)

    def bare(self):
        """Without ways back: what cells and writes take anyway. Returns the state's check."""
        self.build()
        whole = self.side.answer(self.state.check)
        self.steps()
        self.write()
        return whole

    def part(self, what, f, *args):
        """What a side says that it cannot is kept, and the rest of the walk goes on."""
        try:
            f(*args)
        except Told as e:
            self.found.setdefault("told", []).append(f"{what}: {e}")

    def whole(self, wanted, shares):
        root = self.build()
        end = self.steps()
        self.found["kept"] = self.side.kept()
        self.part("back", self.back, root, end, wanted)
        for share in shares:
            self.part(f"two lines, {share:.0%}", self.lines, root, end, share)
        self.write()
        self.found["kept after"] = self.side.kept()
