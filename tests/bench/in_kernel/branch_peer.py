"""What the peers of branch.py are asked to do inside their kernel. Imported there as
`__import__("branch_peer")`, so that no name of it comes into the namespace that they keep."""

import pickle
import types
from pathlib import Path

IPYTHON = {"In", "Out", "get_ipython", "exit", "quit", "open"}


# ---- Kishu: attached by its constructor, as its JupyterLab button ends up doing ----

def kishu_attach(folder, tracker):
    """tracker: "default" or "experimental". Without a page there is no notebook to save (test_mode)."""
    import nbformat
    from kishu.storage.config import Config

    Config.set("JUPYTERINT", "test_mode", True)
    Config.set("IDGRAPH", "experimental_tracker", tracker == "experimental")
    from kishu.jupyterint import KishuForJupyter
    from kishu.notebook_id import NotebookId

    notebook = Path(folder) / "bench.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), notebook)
    kishu = KishuForJupyter(NotebookId("bench", notebook, "bench"), get_ipython())
    kishu.set_session_id(1)
    kishu.install_kishu_hooks()


def _kishu():
    return get_ipython().user_ns["_kishu"]


def kishu_head():
    print(_kishu()._kishu_branch.get_head().commit_id)


def kishu_checkout(commit):
    _kishu().checkout(commit)


def kishu_log():
    from kishu.commands import KishuCommand

    print(len(KishuCommand.log(_kishu()._notebook_id.path()).commit_graph))


def kishu_show(commit):
    from kishu.commands import KishuCommand

    KishuCommand.status(_kishu()._notebook_id.path(), commit)


# ---- the whole session as dill writes it ----

def dill_dump(path):
    import dill

    dill.dump_module(path)


def dill_load(path):
    import dill

    dill.load_module(path)


# ---- all variables in one pickle, protocol 5 ----

def _variables():
    return {k: v for k, v in get_ipython().user_ns.items()
            if not k.startswith("_") and k not in IPYTHON and not isinstance(v, types.ModuleType)}


def pickle_dump(path):
    with open(path, "wb") as f:
        pickle.dump(_variables(), f, protocol=5)


def pickle_load(path):
    with open(path, "rb") as f:
        found = pickle.load(f)
    for name in set(_variables()) - set(found):
        del get_ipython().user_ns[name]
    get_ipython().user_ns.update(found)


def get_ipython():
    from IPython import get_ipython as shell

    return shell()
