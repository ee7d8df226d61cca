"""JupyterLab's page in Chromium, `jupyter lab --gateway-url=...`. Screenshots are kept."""

import json
import os
import subprocess
import threading
import uuid
from pathlib import Path

import nbformat
import pytest

from gateway import ALICE, BUILD, SLACK, wait, within
from lab_server import TOKEN, LabServer
from test_forget import SECRET, found
from test_survival import again

HERE = Path(__file__).resolve().parent

NOTEBOOK = [
    "print('hello from the container')",
    "import pandas as pd\npd.DataFrame({'city': ['北京', 'Zürich', None], 'v': [1.5, None, 3]})",
    "import matplotlib.pyplot as plt\n"
    "plt.bar(['苹果', '香蕉', '樱桃'], [3, 5, 2])\n"
    "plt.title('水果销量'); plt.ylabel('数量'); plt.show()",
    "import ipywidgets as w\n"
    "s, out = w.IntSlider(value=3, max=20), w.Output()\n"
    "def moved(change):\n"
    "    out.clear_output(wait=True)\n"
    "    with out: print('squared', change['new'] ** 2)\n"
    "s.observe(moved, 'value'); display(w.VBox([s, out]))",
    "import io, matplotlib.pyplot as plt\n"
    "fig = plt.figure(figsize=(3.2, 2.4), dpi=100); plt.plot([1, 3, 2]); b = io.BytesIO()\n"
    "fig.savefig(b, format='png'); plt.close(fig); w.Image(value=b.getvalue(), format='png')",
    "u, o = w.FileUpload(), w.Output()\n"
    "def got(change):\n"
    "    f = change['new'][0]; c = bytes(f['content'])\n"
    "    with o: print('got', f['name'], len(c), sum(c))\n"
    "u.observe(got, 'value'); display(w.VBox([u, o]))",
    "from tqdm.auto import tqdm\nimport time\nfor _ in tqdm(range(40)): time.sleep(.01)",
    "print('hello', input('your name? '))",
]
CONTROL = [
    "import time; print('asleep', flush=True); time.sleep(120)",
    "kept = 1",
    "print('kept:', 'kept' in globals())",
    "import time\nn = 0\nfor n in range(1, 51): print('tick', n, flush=True); time.sleep(.1)",
    "print('after the reload', n)",
    "for k in range(20000): print('line', k)",
    "print('flood is over')",
    "import os; os._exit(1)",
    "print('alive again')",
]


KILLED = [
    "import time\nfor n in range(1, 101):\n    print(f'tick {n - 1}.', flush=True)\n"
    "    time.sleep(0.1)",
    "print('after the kill', n)",
]


MAGICS = [
    "import pandas as pd\nsales = pd.DataFrame({'city': ['北京', 'Zürich'], 'v': [1.5, 3]})\nsales",
    "print('<img src=x onerror=\"window.ran = 1\">')  # <script>window.ran = 2</script>",
    f"key = '{SECRET}'\nprint(key)",
    "1/0",
    "%coppice log",
    "%coppice show 1",
    "%coppice status",
    "%coppice forget 3",
    "%coppice forget 5",
    "%coppice log",
    "%coppice show 2",
    "%coppice use 'walk in the lab'",
    "%coppice status",
]


# The scene of issue 6. A branch beside and working files are steps of their own: a cell here, and its
# place in lab/goback.mjs.
GO_BACK = [
    "factor = 2\ndouble = lambda n: n * factor",
    "def count():\n    n = 0\n    while True:\n        yield n\n        n += 1\n"
    "numbers = count()\n[next(numbers) for _ in range(3)]",
    "with open('lines', 'w') as f:\n    f.write('one\\ntwo\\nthree\\n')\nlines = open('lines')\n"
    "lines.readline()",
    "import pandas as pd, random, socket\nsales = pd.DataFrame({'city': ['北京', 'Zürich'], 'v': [4, 5]})\n"
    "random.seed(7)\nnear, far = socket.socketpair()\nsales",
    "factor = 100",
    "[next(numbers) for _ in range(6)]",
    "lines.read()",
    "sales = None\nrandom.random(), random.random()",
    "new = 'five'",
    "print('now:', double(1), 'in', next(numbers), new, 'new' if 'new' in globals() else 'old')",
    "%coppice checkout 4",
    "print('then:', double(21), next(numbers), repr(lines.readline()), sales.v.sum(),\n"
    "      round(random.random(), 6), 'new' in globals())",
    "factor = 7; next(numbers); lines.readline()\nprint('factor is', factor)",
    "%coppice undo",
    "print('undone:', double(2), repr(lines.readline()), next(numbers))",
    "%coppice log",
]


@pytest.fixture(scope="module")
def lab(docker_gateway):
    with LabServer(docker_gateway.url, ALICE) as server:
        yield server


def page(lab, script, sources, shots, **more):
    """Runs lab/SCRIPT.mjs on a notebook with these cells; what it printed."""
    # One that is run once more finds no session of the run before.
    name = f"{script}-{uuid.uuid4().hex[:8]}.ipynb"
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(s) for s in sources],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3",
                                 "language": "python"}})
    nbformat.write(notebook, lab.notebooks / name)
    options = {"url": lab.url, "token": TOKEN, "notebook": name, "shots": str(shots),
               "name": script, **more}
    result = subprocess.run(
        ["node", str(HERE / "lab" / f"{script}.mjs"), json.dumps(options)], capture_output=True,
        text=True, timeout=within(100), env={
            "PATH": os.environ["PATH"], "HOME": str(lab.home),
            "COPPICE_NODE_MODULES": str(BUILD / "node" / "node_modules"),
            "COPPICE_E2E_SLACK": str(max(SLACK / 3, 1))})
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-6000:]
    return json.loads(result.stdout.strip().splitlines()[-1])


@pytest.mark.timeout(400)
def test_notebook(lab, shots):
    page(lab, "notebook", NOTEBOOK, shots)
    for what in ("figure", "slider", "buffers", "tqdm", "input"):
        assert (shots / f"notebook-{what}.png").stat().st_size > 10000


@pytest.mark.timeout(400)
def test_control(lab, shots):
    got = page(lab, "control", CONTROL, shots)
    assert got["flood"] == 20000
    for what in ("interrupt", "restart", "reload", "flood", "exit"):
        assert (shots / f"control-{what}.png").stat().st_size > 10000


@pytest.mark.timeout(400)
def test_magics(lab, shots, docker_gateway):
    """The history of a kernel from its own notebook; of the secret nothing is left at the gateway's."""
    got = page(lab, "magics", MAGICS, shots)
    assert got["log"] == 6
    for what in ("log", "show", "status", "forget", "log-after", "use"):
        assert (shots / f"magics-{what}.png").stat().st_size > 10000
    assert found(docker_gateway.data_dir, (SECRET,)) == []


@pytest.mark.timeout(400)
def test_going_back(lab, shots, docker_gateway):
    page(lab, "goback", GO_BACK, shots, gateway=docker_gateway.url, gatewayToken=ALICE)
    for what in ("ten-cells", "checkout", "goes-on", "undo", "log"):
        assert (shots / f"goback-{what}.png").stat().st_size > 10000


@pytest.mark.timeout(400)
def test_the_gateway_is_killed_mid_cell(docker_server, shots):
    """The page comes back by itself, shows every line once, and its cell ends."""
    server = docker_server("lab-killed")
    server.argv[server.argv.index("--listen") + 1] = f"127.0.0.1:{server.port}"

    def start_again():
        server.process.wait()
        server.reader.join()
        again(server)

    successor = threading.Thread(target=start_again)
    successor.start()
    with LabServer(server.url, ALICE, "lab-killed") as lab:
        got = page(lab, "killed", KILLED, shots, gateway=server.process.pid)
        assert got["ticks"] == 100
    assert (shots / "killed-gateway.png").stat().st_size > 10000
    successor.join()


def test_kernels_end_with_their_sessions(lab, docker_gateway):
    """JupyterLab's "shut down all": no container of the notebooks stays."""
    for session in lab.json("/api/sessions"):
        assert lab.delete(f"/api/sessions/{session['id']}").status_code == 204
    wait(lambda: docker_gateway.json("/api/kernels"), lambda rows: rows == [], within(8))
