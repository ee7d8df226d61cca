"""How often the cgroup of this container killed a process for lack of memory."""

FILES = (
    "/sys/fs/cgroup/memory.events",  # version 2, own cgroup namespace
    "/sys/fs/cgroup/memory/memory.oom_control",  # version 1
)


def count(files=FILES):
    """The `oom_kill` count, 0 where no file tells it."""
    for name in files:
        try:
            with open(name, encoding="ascii") as f:
                for line in f:
                    word, _, value = line.partition(" ")
                    if word == "oom_kill":
                        return int(value)
        except (OSError, ValueError):
            continue
    return 0
