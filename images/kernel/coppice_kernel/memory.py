"""How much memory and how many tasks this container has, by its cgroup (version 2 or 1)."""

V2 = "/sys/fs/cgroup"
V1 = "/sys/fs/cgroup/memory"
TASKS = ("/sys/fs/cgroup/pids.current", "/sys/fs/cgroup/pids/pids.current")
NO_LIMIT = 1 << 60  # what version 1 says is larger


def _text(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read()
    except (OSError, ValueError):
        return None


def _number(*paths):
    """Of the first that tells one; None: no file does."""
    for path in paths:
        text = _text(path)
        if text and text.strip().isdigit():
            return int(text)
    return None


def _field(path, name):
    for line in (_text(path) or "").splitlines():
        word, _, value = line.partition(" ")
        if word == name:
            return int(value)
    return 0


def _own_limit():
    """None: the container has none of its own."""
    found = _number(f"{V2}/memory.max", f"{V1}/memory.limit_in_bytes")
    return found if found is not None and found < NO_LIMIT else None


def limit():
    """In bytes; that of the machine where the container has none."""
    found = _own_limit()
    if found is not None:
        return found
    for line in (_text("/proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) << 10
    return NO_LIMIT


def fullness():
    """The part of the container's limit that is in use, without the pages of files that would be given
    back; 0 where there is no limit."""
    most = _own_limit()
    if not most:
        return 0.0
    for folder, current, idle in (
        (V2, "memory.current", "inactive_file"),
        (V1, "memory.usage_in_bytes", "total_inactive_file"),
    ):
        used = _number(f"{folder}/{current}")
        if used is not None:
            return max(0, used - _field(f"{folder}/memory.stat", idle)) / most
    return 0.0


def tasks():
    """Processes and threads; None: not known."""
    return _number(*TASKS)


def private(pid):
    """Bytes that nobody has but this process; 0 if it is gone."""
    total = 0
    for line in (_text(f"/proc/{pid}/smaps_rollup") or "").splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:", "Private_Hugetlb:")):
            total += int(line.split()[1]) << 10
    return total
