"""Run with: python3 -m pytest images/kernel/coppice_kernel/tests. Needs no container."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
