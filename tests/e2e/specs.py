"""Kernelspecs for the engine `process`: the newest ipykernel of the venv, and scripted kernels."""

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def write(folder):
    """Lays a Jupyter data folder there; its path is for JUPYTER_PATH."""
    ipykernel = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    scripted = [sys.executable, str(HERE / "fake_kernel.py"), "{connection_file}"]
    _spec(folder, "python3", ipykernel, "Python 3 (newest)",
          metadata={"debugger": True, "supported_encryption": ["curve"]})
    _spec(folder, "plain", ipykernel, "Python 3 (TCP in the clear)", interrupt_mode="signal",
          env={"FROM_SPEC": "yes"}, logo=False)
    _spec(folder, "fake", scripted, "Scripted", interrupt_mode="message", logo=False)
    _spec(folder, "broken", [sys.executable, "-c", "raise SystemExit(7)"], "Never starts",
          logo=False)
    return str(folder)


def _spec(folder, name, argv, display_name, logo=True, **more):
    home = Path(folder) / "kernels" / name
    home.mkdir(parents=True)
    home.joinpath("kernel.json").write_text(json.dumps(
        {"argv": argv, "display_name": display_name, "language": "python", **more}))
    if logo:
        source = Path(sys.prefix) / "share/jupyter/kernels/python3"
        for picture in source.glob("logo-*"):
            shutil.copy(picture, home)
