"""Run with: python3 -m pytest images/kernel/coppice_kernel/tests. Needs no container."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import pytest  # noqa: E402

for name in ("ground", "keeper", "files_scenes", "park_scenes", "park_hazards", "park_kills"):
    pytest.register_assert_rewrite(f"coppice_kernel.tests.{name}")
