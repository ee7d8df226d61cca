"""What the supervisor imports once, so that a forked kernel has it already.

Nothing here may start a thread or open a ZeroMQ context: a fork would inherit half of it.
Which modules, and what they cost: docs/decisions/0004-preimport.md.
"""

import gc
import importlib
import os
import shutil
import site
import sys

MODULES = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "IPython.core.completer",
    "coppice_kernel.kernel",
    "coppice_kernel.streams",
    "numpy",
    "pandas",
    "matplotlib.figure",
    "matplotlib.font_manager",  # not pyplot: what it does at import belongs to the kernel
)

BACKEND = "module://matplotlib_inline.backend_inline"
FONTS = "/usr/share/coppice/matplotlib"


def ipykernel_version():
    """None where there is none: kernels will fail one by one, and say so."""
    try:
        from ipykernel import _version
    except ImportError:
        return None
    return _version.__version__


def overridden():
    """True if the user installed another version of something that is imported here already: a
    fork would go on with the old one."""
    try:
        names = os.listdir(site.getusersitepackages())
    except OSError:
        return False
    return any(name.partition(".")[0] in sys.modules for name in names)


def _lay_down_fonts():
    """matplotlib wants its font list in a folder that it can write to; finding the fonts anew costs
    seconds at the first plot."""
    home = os.environ.get("HOME", "")
    cache = os.path.join(home, ".cache", "matplotlib")
    try:
        os.makedirs(cache, exist_ok=True)
        for name in os.listdir(FONTS):
            if name.startswith("fontlist-"):
                shutil.copyfile(os.path.join(FONTS, name), os.path.join(cache, name))
    except OSError as e:
        print(f"preimport: no font list: {e}", file=sys.stderr)


def prepare():
    os.environ.setdefault("MPLBACKEND", BACKEND)
    _lay_down_fonts()
    for name in os.environ.get("COPPICE_PREIMPORT", " ".join(MODULES)).split():
        try:
            importlib.import_module(name)
        except Exception as e:  # a broken package must not keep kernels from starting
            print(f"preimport: {name}: {e}", file=sys.stderr)
    # What is here now never dies: kept out of collections, its pages stay shared with the kernels.
    gc.collect()
    gc.freeze()
