"""The 25 probes of branching.md section 5: what a way back has to bring back. Shared by test_park.py and
by tests/bench/branch.py, where every peer is asked the same.

name: (code before, what changes it, what is asked afterwards, what must be answered)
"""

# What can be parked, also all together in one state, but those of SEPARATE.
EXACT = {
    "P1 values": ("v = {'a': [1, 2.5, 'ä']}", "v = 0", "v", "{'a': [1, 2.5, 'ä']}"),
    "P2 identity": ("one = [1]; two = one", "two = [1]", "one is two", "True"),
    "P3 view shares its base": (
        "import numpy as np; base = np.zeros(9); view = base[2:5]",
        "view = view.copy()",
        "(view.__setitem__(0, 7), base[2], np.shares_memory(base, view))[1:]",
        "(np.float64(7.0), True)",
    ),
    "P4 function sees live globals": (
        "k = 1\ndef by_def(): return k\nby_lambda = lambda: k",
        "k = 9; by_def = by_lambda = None",
        "(exec('k = 5', globals()), by_def(), by_lambda())[1:]",
        "(5, 5)",
    ),
    "P5 recursion and cycles": (
        "rec = []; rec.append(rec)\nclass Node: pass\nnode = Node(); node.self = node; Node.first = node",
        "rec = Node = node = None",
        "(rec[0] is rec, node.self is node, Node.first is node, isinstance(node, Node))",
        "(True, True, True, True)",
    ),
    "P6 generator": ("gen = (i * i for i in range(9)); next(gen); next(gen)", "list(gen)", "next(gen)", "4"),
    "P7 file offset and content": (
        "open('t.txt', 'w').write('line 1\\nline 2\\nline 3\\n'); tf = open('t.txt'); tf.readline()",
        "tf.read()",
        "(tf.readline(), tf.read())",
        "('line 2\\n', 'line 3\\n')",
    ),
    "P8 random": (
        "import random; random.seed(7); random.random()",
        "random.seed(0)",
        "random.random()",
        "0.15084917392450192",
    ),
    "P9 numpy's generator": (
        "import numpy as np; np.random.seed(7); np.random.rand(); rng = np.random.default_rng(7); rng.random()",
        "np.random.seed(0); rng = None",
        "(float(np.random.rand()), float(rng.random()))",
        "(0.7799187922401146, 0.8972138009695755)",
    ),
    "P10 deleted name": ("dead = 1; del dead", "dead = 2", "'dead' in globals()", "False"),
    "P11 hidden name": ("_hidden = 3", "del _hidden", "_hidden", "3"),
    "P12 environment": ("import os; os.environ['C'] = 'x'", "del os.environ['C']", "os.environ['C']", "'x'"),
    "P13 folder and sys.path": (
        "import os, sys; os.makedirs('deep', exist_ok=True); os.chdir('deep'); sys.path.append('/nowhere')",
        "os.chdir('/'); sys.path.remove('/nowhere')",
        "(os.path.basename(os.getcwd()), sys.path[-1])",
        "('deep', '/nowhere')",
    ),
    "P14 Out": ("41 + 1", "Out.clear()", "list(Out.values())[-1]", "42"),
    "P15 In": ("'the cell'", "In.clear()", "In[-2]", "\"'the cell'\""),
    "P16 execution count": ("pass", "pass", "get_ipython().execution_count", "2"),
    "P17 warnings filter": (
        "import warnings; warnings.simplefilter('error', UnicodeWarning)",
        "warnings.resetwarnings()",
        "(warnings.filters[0][0], warnings.filters[0][2].__name__)",
        "('error', 'UnicodeWarning')",
    ),
    "P18 open figures": (
        "import matplotlib.pyplot as plt; plt.ioff(); fig = plt.figure(); plt.plot([1, 2])\n"
        "from matplotlib_inline.config import InlineBackend\nInlineBackend.instance().close_figures = False",
        "plt.close('all')",
        "(len(plt.get_fignums()), len(fig.axes))",
        "(1, 1)",
    ),
    "P24 unflushed writer": (
        "import tempfile; wt = tempfile.gettempdir() + '/w.txt'; w = open(wt, 'w'); w.write('unwritten ')",
        "w.close(); open(wt, 'w').close()",
        "(w.write('on'), w.flush(), open(wt).read())[-1]",
        "'unwritten on'",
    ),
}
SEPARATE = ("P14 Out", "P15 In", "P16 execution count")  # each in a state of its own
# What lies outside the process, or does not live on in a copy of it. Each in a state of its own: as it
# was, or declared.
OUTSIDE = {
    "P19 working files": (
        "open('f', 'w').write('1'); None",
        "open('f', 'w').write('2'); None",
        "open('f').read()",
        "'1'",
    ),
    "P20 sqlite handle": (
        "import sqlite3; db = sqlite3.connect('x.db')",
        "db.close()",
        "db.execute('select 6 * 7').fetchone()",
        "(42,)",
    ),
    "P21 user thread": (
        "import threading; e = threading.Event(); t = threading.Thread(target=e.wait, name='mine'); t.start()",
        "e.set(); t.join()",
        "t.is_alive()",
        "True",
    ),
    "P22 subprocess": (
        "import subprocess; p = subprocess.Popen(['sleep', '99'])",
        "p.kill(); p.wait(); None",
        "p.poll()",
        "None",
    ),
    "P23 socket": (
        "import socket; s, t = socket.socketpair()",
        "s.close(); t.close()",
        "(s.send(b'x'), t.recv(1))[1]",
        "b'x'",
    ),
}
# Asked in two branches of one node, the answers must differ.
SIBLINGS = ("P25 siblings", "import uuid, secrets", "(uuid.uuid4(), secrets.token_hex(8))")
