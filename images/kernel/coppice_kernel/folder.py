"""A digest of the working folder as it stands: what `stat` tells of every file below it."""

import hashlib
import os
from time import perf_counter

FILES_MAX = 10000
BUDGET_S = 0.02


def digest(path, clock=perf_counter, budget_s=BUDGET_S):
    """"" where there are too many to be looked at in a pause: not known."""
    found = hashlib.blake2b(digest_size=16)
    end, count, waiting = clock() + budget_s, 0, [path]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.fsencode(folder)) as entries:
                entries = sorted(entries, key=lambda e: e.name)
        except OSError:
            continue  # gone meanwhile, or not ours to read: the same each time
        for entry in entries:
            count += 1
            if count > FILES_MAX or (count % 64 == 0 and clock() > end):
                return ""
            try:
                s = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            # A folder's own times change with each file that is written beside and renamed.
            stamp = (s.st_mode,) if is_folder else (
                s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
            found.update(repr((entry.path, stamp)).encode())
            if is_folder:
                waiting.append(entry.path)
    return found.hexdigest()
