"""JupyterLab's server before a gateway, `jupyter lab --gateway-url=...`, in folders of its own."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import requests

from gateway import LOGS, Gateway, wait, within

TOKEN = "lab-page-token-12ab"


class LabServer(Gateway):
    def __init__(self, url, token, name="lab"):
        self.gateway_url, self.gateway_token, self.name = url, token, name
        self.home = Path(tempfile.mkdtemp(prefix="coppice-lab-", dir="/tmp"))
        self.notebooks = self.home / "notebooks"
        self.notebooks.mkdir()
        with socket.socket() as s:  # a free port
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        super().__init__(f"http://127.0.0.1:{self.port}", TOKEN)

    def __enter__(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
        env |= {
            "HOME": str(self.home), "JUPYTER_GATEWAY_AUTH_TOKEN": self.gateway_token,
            "JUPYTER_CONFIG_DIR": str(self.home / "config"),
            "IPYTHONDIR": str(self.home / "ipython"),
            "JUPYTER_DATA_DIR": str(self.home / "data"), "JUPYTER_NO_CONFIG": "1",
            "JUPYTER_RUNTIME_DIR": str(self.home / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(self.home / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.home / "workspaces"),
        }
        LOGS.mkdir(parents=True, exist_ok=True)
        # No question about news over the page.
        settings = self.home / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        settings.joinpath("notification.jupyterlab-settings").write_text(
            '{"fetchNews": "false", "checkForUpdates": false}')
        self.log_file = open(LOGS / f"jupyter-{self.name}.log", "wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
             f"--gateway-url={self.gateway_url}", f"--ServerApp.port={self.port}",
             "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1",
             f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={self.notebooks}",
             "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
             "--LabApp.extension_manager=readonly", "--ServerApp.terminals_enabled=False"],
            env=env, stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=subprocess.STDOUT,
            cwd=self.home)
        wait(self._answers, bool, within(30))
        return self

    def _answers(self):
        assert self.process.poll() is None, (LOGS / f"jupyter-{self.name}.log").read_text()[-3000:]
        try:
            return self.get("/api/status", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(within(5))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log_file.close()
        shutil.rmtree(self.home, ignore_errors=True)
