"""The program that a revived line's process becomes: `warden.py LINE LINK PID`, above the kernel PID.

It was a fork of a parked kernel, and does not keep its memory.
"""

import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from coppice_kernel import line  # noqa: E402


def main():
    number, link, pid = map(int, sys.argv[1:4])
    os.set_inheritable(link, False)
    line.watch(number, socket.socket(fileno=link), pid)


if __name__ == "__main__":
    main()
