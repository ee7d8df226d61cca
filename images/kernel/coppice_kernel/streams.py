"""sys.stdout and sys.stderr of a kernel: ipykernel's, which sends a line of print() as one message.

print() writes its text and the end of its line one after the other. ipykernel sends what there is
when a timer fires that an earlier write set, now and then between the two.
"""

import time

from ipykernel.iostream import OutStream

YOUNG_S = 0.02
PUT_OFFS = 5  # a progress bar that never ends its line still moves


class CoppiceStream(OutStream):
    # name -> one that a revived kernel goes on with: the user's loggers and modules hold it.
    inherited = {}
    _open_since = 0.0  # when a line was written to that has not ended yet; 0: it has
    _flushes = 0

    def __new__(cls, session, pub_thread, name, *_, **__):
        return cls.inherited.pop(name, None) or super().__new__(cls)

    def write(self, string):
        # Open while it is written, whatever it ends with: the timer may fire in between.
        self._open_since = time.monotonic()
        count = super().write(string)
        if string.endswith("\n"):
            self._open_since = 0.0
        return count

    def _schedule_flush(self):
        if self._flush_pending:
            return
        self._flush_pending = True

        def schedule():
            self._io_loop.call_later(self.flush_interval, self._on_timer, self._flushes, PUT_OFFS)

        self.pub_thread.schedule(schedule)

    def _on_timer(self, flushes, put_offs):
        if flushes != self._flushes:
            return  # sent meanwhile; what was written after that has a timer of its own
        if put_offs and time.monotonic() - self._open_since < YOUNG_S:
            self._io_loop.call_later(YOUNG_S, self._on_timer, flushes, put_offs - 1)
        else:
            self._flush()

    def _flush(self):
        self._flushes += 1
        super()._flush()
