"""The class matrix of parked forks: common objects and states of libraries, and what becomes of each in
a kernel that is revived. test_park_matrix.py runs it and prints it.

A row of EQUAL is set up in a cell, changed in later ones, and asked for afterwards. What is to be answered
is nowhere written down: it is what a kernel answers in which the row was set up and nothing else ran.
"""

# class or state: (set-up, what changes it afterwards, what is asked)
EQUAL = {
    # ---- plain Python ----
    "numbers, text, bytes": ("n1 = (1, 2.5, 3 + 4j, 'ä', b'x', 1 << 99)", "n1 = 0", "n1"),
    "list, dict, set, tuple, range": (
        "l1 = [1, {'a': {2}}, (3,), range(4)]", "l1[1]['a'].add(9); l1.clear()", "l1"),
    "frozenset, bytearray, slice": (
        "fz = [frozenset({1}), bytearray(b'abc'), slice(1, 2)]", "fz[1][0] = 90", "fz"),
    "collections": (
        "import collections as co\n"
        "co1 = (co.Counter('aab'), co.OrderedDict(a=1), co.ChainMap({}, {'k': 1}), co.deque([1, 2], 2), "
        "co.defaultdict(list, {1: [2]}))",
        "co1[0].clear(); co1[3].append(3); co1[4][7]", "co1"),
    "namedtuple": ("NT = co.namedtuple('NT', 'x y'); nt = NT(1, 2)", "nt = NT(0, 0)", "(nt, nt.x)"),
    "closure": (
        "def counter():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return step\nstep = counter(); step()",
        "step(); step()", "step()"),
    "lambda with defaults": ("lam = lambda a, b=[]: (b.append(a), b)[1]; lam(1)", "lam(2)", "lam(5)"),
    "functools.partial": (
        "import functools as ft\npa = ft.partial(divmod, 17)", "pa = None", "(pa(5), pa.func.__name__)"),
    "lru_cache": (
        "@ft.lru_cache\ndef sq(n): return n * n\nsq(2); sq(2)", "sq.cache_clear()", "tuple(sq.cache_info())"),
    "cached_property, singledispatch": (
        "class CP:\n    made = 0\n    @ft.cached_property\n    def v(self):\n        CP.made += 1\n"
        "        return CP.made\ncp = CP(); cp.v\n"
        "@ft.singledispatch\ndef sd(a): return 'any'\n@sd.register\ndef _(a: int): return 'int'",
        "CP.made = 9; cp = CP()\nsd.register(str, lambda a: 'str')", "(cp.v, CP.made, sd(1), sd(''))"),
    "class made in a cell": (
        "class Tree:\n    grown = 0\n    def __init__(self): self.kids = []\n"
        "    def grow(self): Tree.grown += 1; self.kids.append(Tree()); return self\nt1 = Tree().grow()",
        "Tree.grow = None; t1.kids = 7", "(t1.grow().grown, len(t1.kids), type(t1) is Tree)"),
    "dataclass": (
        "import dataclasses as dc\n@dc.dataclass(order=True)\nclass D: a: int; b: list = dc.field(default_factory=list)\n"
        "d1 = D(1)", "d1.b.append(1); D = None", "(d1, D(1) == d1, D(0) < d1)"),
    "enum": (
        "import enum\nclass Hue(enum.Flag): R = 1; G = 2\nhue = Hue.R | Hue.G", "hue = Hue(0)",
        "(hue, Hue(1) is Hue.R)"),
    "metaclass, descriptor, slots": (
        "class Meta(type):\n    def __len__(cls): return 7\n"
        "class Desc:\n    def __get__(self, o, t=None): return o and o.s * 2\n"
        "class Sl(metaclass=Meta):\n    __slots__ = ('s',)\n    d = Desc()\nsl = Sl(); sl.s = 4",
        "sl.s = 5; Desc.__get__ = lambda *_: 0", "(len(Sl), sl.d, hasattr(sl, '__dict__'))"),
    "abstract class, protocol": (
        "import abc\nclass Ab(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\nAb.register(int)",
        "Ab.register(str)", "(isinstance(1, Ab), isinstance('', Ab))"),
    "property, static and class methods": (
        "class P:\n    n = 1\n    @property\n    def p(self): return self.n\n    @p.setter\n"
        "    def p(self, v): self.n = v\n    @classmethod\n    def c(cls): return cls.n\npp = P(); pp.p = 5",
        "pp.p = 6; P.n = 9", "(pp.p, P.c())"),
    "generator": ("g1 = (i for i in range(9)); next(g1)", "list(g1)", "(next(g1), g1.gi_running)"),
    "generator that is sent to": (
        "def echo():\n    got = yield\n    while True: got = yield got * 2\necho1 = echo(); next(echo1); echo1.send(2)",
        "echo1.close()", "echo1.send(21)"),
    "iterators of every kind": (
        "its = [iter([1, 2, 3]), iter('abc'), iter({1: 2, 3: 4}), iter(range(5)), enumerate('xy'), "
        "zip('ab', 'cd'), map(str, [1, 2]), filter(None, [0, 1, 2]), reversed([1, 2])]\nfor i in its: next(i)",
        "[list(i) for i in its]", "[next(i, None) for i in its]"),
    "itertools": (
        "import itertools as it\nit1 = [it.count(5), it.cycle('ab'), it.chain([1], [2]), it.islice(it.count(), 2, 9), "
        "it.accumulate([1, 2, 3]), it.groupby('aab'), it.tee([1, 2])[0], it.product('ab', 'cd'), "
        "it.permutations('abc')]\nfor i in it1[:-4] + it1[-3:]: next(i)",
        "[next(i) for i in it1 for _ in (1,)]", "[next(i) for i in it1[:-4] + it1[-3:]], next(it1[5])[0]"),
    "coroutine not begun": (
        "async def co_(): return 42\ncr = co_()", "cr.close()", "await cr"),
    "async generator": (
        "async def ag():\n    for i in range(5): yield i\nag1 = ag(); await anext(ag1)",
        "await anext(ag1)", "await anext(ag1)"),
    "exception with its traceback": (
        "def bad(): raise ValueError('x')\ntry: bad()\nexcept ValueError as e: exc = e",
        "exc = exc.with_traceback(None)",
        "(exc.args, exc.__traceback__.tb_next.tb_frame.f_code.co_name)"),
    "exception group, notes": (
        "eg = ExceptionGroup('g', [KeyError(1)]); eg.add_note('n')", "eg.add_note('m')",
        "(eg.__notes__, eg.exceptions[0].args)"),
    "frame": (
        "import sys\ndef fr_(): kept = 5; return sys._getframe()\nfr = fr_()", "fr.clear()",
        "(fr.f_locals['kept'], fr.f_code.co_name)"),
    "module made at run time": (
        "import types\nmod = types.ModuleType('made'); exec('v = 1', mod.__dict__); sys.modules['made'] = mod",
        "mod.v = 2; del sys.modules['made']", "__import__('made').v"),
    "module file that was imported": (
        "open('own_mod.py', 'w').write('state = [1]\\n'); import own_mod; own_mod.state.append(2)",
        "own_mod.state.clear()", "own_mod.state"),
    "weakrefs": (
        "import weakref\nclass W: pass\nw1 = W(); wr = weakref.ref(w1); wd = weakref.WeakValueDictionary(a=w1)",
        "w1 = None; import gc; gc.collect()", "(wr() is w1, list(wd))"),
    "memoryview": ("ba = bytearray(b'hello'); mv = memoryview(ba)[1:3]", "mv[0] = 0", "(bytes(mv), mv.obj is ba)"),
    "private mmap": (
        "import mmap\nopen('map.bin', 'wb').write(b'0123'); mf = open('map.bin', 'rb')\n"
        "mm = mmap.mmap(mf.fileno(), 4, access=mmap.ACCESS_COPY); mm[0:2] = b'ab'",
        "mm[0:4] = b'zzzz'", "mm[:]"),
    "struct, array": (
        "import struct, array\nar = array.array('d', [1, 2]); st = struct.Struct('<hi')", "ar[0] = 9; st = None",
        "(ar.tolist(), st.pack(1, 2))"),
    "ctypes buffer and structure": (
        "import ctypes\ncb = ctypes.create_string_buffer(b'abc')\n"
        "class Pt(ctypes.Structure): _fields_ = [('x', ctypes.c_int)]\npt = Pt(5); ptr = ctypes.pointer(pt)",
        "cb.value = b'z'; pt.x = 6", "(cb.value, ptr.contents.x, ptr[0].x)"),
    "ctypes callback": (
        "cbk = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: n + k_c); k_c = 1", "k_c = 50", "cbk(41)"),
    # ---- text, numbers, time ----
    "regex and match": (
        "import re\nrx = re.compile(r'(?P<y>\\d+)-(\\d+)'); rm = rx.match('12-34')\nri = rx.finditer('1-2 3-4'); next(ri)",
        "rm = None; list(ri)", "(rm['y'], rx.pattern, next(ri).group())"),
    "zoned datetimes": (
        "import datetime as dt, zoneinfo\nz1 = dt.datetime(2026, 3, 29, 1, 59, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin'))",
        "z1 = None", "(z1.isoformat(), (z1 + dt.timedelta(days=1)).utcoffset(), z1.tzinfo is zoneinfo.ZoneInfo('Europe/Berlin'))"),
    "time zone of the process": (
        "import os, time\nos.environ['TZ'] = 'Asia/Tokyo'; time.tzset()", "os.environ['TZ'] = 'UTC'; time.tzset()",
        "time.localtime(0).tm_hour"),
    "decimal, its context; fractions": (
        "import decimal, fractions\ndecimal.getcontext().prec = 5; de = decimal.Decimal(1) / 3; fc = fractions.Fraction(1, 3)",
        "decimal.getcontext().prec = 28; de = 0", "(de, decimal.Decimal(1) / 7, fc + fc)"),
    "decimal localcontext that is open": (
        "lc = decimal.localcontext(); lc.__enter__().prec = 3", "lc.__exit__(None, None, None)",
        "(decimal.Decimal(2) / 3, lc.__exit__(None, None, None), decimal.getcontext().prec)"),
    "contextvars": (
        "import contextvars as cv\nvar = cv.ContextVar('var', default=0); _ = var.set(5); ctx = cv.copy_context()",
        "var.set(9)", "(var.get(), ctx[var])"),
    "locale": (
        "import locale\nlocale.setlocale(locale.LC_CTYPE, 'C.UTF-8'); lo = locale.setlocale(locale.LC_CTYPE)",
        "locale.setlocale(locale.LC_CTYPE, 'C')", "locale.setlocale(locale.LC_CTYPE)"),
    "random.Random, random": (
        "import random\nrr = random.Random(3); rr.random(); random.seed(4)", "rr.random(); random.random()",
        "(rr.random(), random.random(), random.gauss(0, 1))"),
    "hash objects, hmac, CRC": (
        "import hashlib, hmac\nh1 = hashlib.sha256(b'a'); h2 = hmac.new(b'k', b'a', 'sha1'); h3 = hashlib.blake2b(b'x')",
        "h1.update(b'b'); h2.update(b'b'); h3.update(b'y')", "(h1.hexdigest(), h2.hexdigest(), h3.hexdigest())"),
    "compressors half way": (
        "import zlib, bz2, lzma\nz2 = zlib.compressobj(); zc = z2.compress(b'a' * 99); lz = lzma.LZMADecompressor()\n"
        "lzb = lzma.compress(b'b' * 99); lz.decompress(lzb[:30])",
        "z2.flush(); lz.decompress(lzb[30:])",
        "(zlib.decompress(zc + z2.flush()) == b'a' * 99, len(lz.decompress(lzb[30:])), lz.eof)"),
    "incremental decoder": (
        "import codecs\ncd = codecs.getincrementaldecoder('utf-8')(); cd.decode(b'\\xc3')", "cd.reset()", "cd.decode(b'\\xa4')"),
    "pickler memo, copyreg": (
        "import pickle, io\npb = io.BytesIO(); pk = pickle.Pickler(pb); px = [1]; pk.dump(px)", "pk.clear_memo()",
        "(pk.dump(px), len(pb.getvalue()))"),
    "ElementTree": (
        "import xml.etree.ElementTree as ET\net = ET.fromstring('<a><b c=\"1\"/></a>'); eb = et[0]", "et.remove(eb)",
        "(ET.tostring(et), eb is et[0])"),
    "lxml tree": (
        "from lxml import etree\nlx = etree.fromstring('<a><b>t</b></a>'); lxp = etree.XPath('//b/text()')",
        "lx[0].text = 'u'", "(etree.tostring(lx), lxp(lx))"),
    "json codecs, configparser": (
        "import json, configparser\njs = json.loads('{\"a\": [1]}'); jd = json.JSONEncoder(sort_keys=True)\n"
        "cf = configparser.ConfigParser(); cf.read_string('[s]\\nk = 1\\n')",
        "js.clear(); cf['s']['k'] = '2'", "(js, jd.encode({'b': 1, 'a': 2}), cf['s']['k'])"),
    "SSL context": (
        "import ssl\nsc = ssl.create_default_context(); sc.check_hostname = False", "sc.check_hostname = True",
        "(sc.check_hostname, len(sc.get_ca_certs()) > 10)"),
    # ---- files ----
    "StringIO, BytesIO, spooled file": (
        "import io, tempfile\nsi = io.StringIO('abc'); si.read(1); bi = io.BytesIO(b'xyz'); bi.seek(2)\n"
        "sp = tempfile.SpooledTemporaryFile(); sp.write(b'12'); sp.seek(1)",
        "si.read(); bi.read(); sp.read()", "(si.read(), bi.read(), sp.read())"),
    "text file that is iterated": (
        "open('it.txt', 'w').write('a\\nb\\nc\\n'); fi = open('it.txt'); next(fi)", "fi.read()", "(next(fi), fi.closed)"),
    "binary file, both ways": (
        "fb = open('rw.bin', 'w+b'); _ = fb.write(b'0123456789'); fb.flush(); fb.seek(4)", "fb.read()", "(fb.read(2), fb.tell())"),
    "gzip, bz2 being read": (
        "import gzip\nwith gzip.open('a.gz', 'wt') as f: _ = f.write('one\\ntwo\\n')\ngz = gzip.open('a.gz', 'rt'); gz.readline()",
        "gz.close()", "gz.readline()"),
    "zip being read": (
        "import zipfile\nwith zipfile.ZipFile('a.zip', 'w') as f: f.writestr('m', 'member text')\n"
        "zf = zipfile.ZipFile('a.zip'); zm = zf.open('m'); zm.read(7)",
        "zm.close(); zf.close()", "(zm.read(), zf.namelist())"),
    "tar being read": (
        "import tarfile\nwith tarfile.open('a.tar', 'w') as f: f.add('it.txt')\ntf = tarfile.open('a.tar'); tn = tf.next()",
        "tf.close()", "(tn.name, tf.extractfile(tn).read())"),
    "csv reader and writer": (
        "import csv\nopen('a.csv', 'w').write('x,y\\n1,2\\n3,4\\n'); cr_ = csv.DictReader(open('a.csv')); next(cr_)\n"
        "cw = csv.writer(si2 := io.StringIO()); cw.writerow([1])",
        "list(cr_); cw.writerow([9])", "(next(cr_), cr_.line_num, cw.writerow([2]), si2.getvalue())"),
    "descriptors that share an offset": (
        "open('dup', 'w').write('abcdef'); da = os.open('dup', os.O_RDONLY); db_ = os.dup(da); os.read(da, 1)",
        "os.read(db_, 9)", "(os.read(db_, 2), os.read(da, 2))"),
    "folder's descriptor, scandir": (
        "os.makedirs('many', exist_ok=True)\nfor i in range(3): open(f'many/{i}', 'w').close()\n"
        "dfd = os.open('many', os.O_RDONLY); sd_ = os.scandir('many'); sdn = next(sd_).name",
        "os.close(dfd); sd_.close()", "(sorted(os.listdir(dfd)), len(list(sd_)), sdn in '012')"),
    "pathlib, glob": (
        "import pathlib\npt_ = pathlib.Path('many'); pg = pt_.glob('*'); pn = next(pg)", "list(pg)", "(len(list(pg)), pn.parent)"),
    "named temporary file": (
        "ntf = tempfile.NamedTemporaryFile('w+', dir='.'); _ = ntf.write('abc'); ntf.flush(); ntf.seek(1)", "ntf.read()",
        "(ntf.read(), os.path.exists(ntf.name))"),
    # ---- the process ----
    "environment": ("os.environ['M'] = 'x'", "os.environ['M'] = 'y'", "os.environ['M']"),
    "working directory": ("wd0 = os.getcwd()", "os.chdir('/')", "os.getcwd() == wd0"),
    "umask, nice, limits": (
        "import resource\nos.umask(0o027); resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (900, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
        "os.umask(0o022); resource.setrlimit(resource.RLIMIT_NOFILE, (800, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
        "(os.umask(0o027), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"),
    "sys.path, meta_path, recursion limit": (
        "sys.path.append('/x'); sys.setrecursionlimit(2345)\nclass Finder:\n    def find_spec(*a): return None\n"
        "sys.meta_path.append(Finder)",
        "sys.path.remove('/x'); sys.setrecursionlimit(3000); sys.meta_path.remove(Finder)",
        "('/x' in sys.path, sys.getrecursionlimit(), Finder in sys.meta_path)"),
    "hooks of sys and threading": (
        "import threading\nsys.unraisablehook = lambda *a: 'u'; threading.excepthook = lambda *a: 't'",
        "sys.unraisablehook = sys.__unraisablehook__; threading.excepthook = threading.__excepthook__",
        "(sys.unraisablehook(1), threading.excepthook(1))"),
    "builtins that were replaced": (
        "import builtins\nbuiltins.answer = 42", "del builtins.answer", "answer"),
    "warnings filters": (
        "import warnings\nwarnings.filterwarnings('error', 'careful')", "warnings.resetwarnings()",
        "[f[0] for f in warnings.filters if f[1] and f[1].match('careful')]"),
    "signal handler and mask": (
        "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: got_s.append(1)); got_s = []\n"
        "_ = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])",
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])",
        "(signal.raise_signal(signal.SIGUSR1), got_s, signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, []))"),
    "interval timer": (
        "signal.signal(signal.SIGALRM, lambda *_: None); _ = signal.setitimer(signal.ITIMER_REAL, 5000, 7)",
        "signal.setitimer(signal.ITIMER_REAL, 0)",
        "(4000 < signal.getitimer(signal.ITIMER_REAL)[0] <= 5000, signal.getitimer(signal.ITIMER_REAL)[1])"),
    "garbage collector's settings": ("import gc\ngc.set_threshold(500, 5, 5); gc.disable()", "gc.set_threshold(700); gc.enable()",
                                     "(gc.get_threshold(), gc.isenabled())"),
    "tracemalloc": ("import tracemalloc\ntracemalloc.start(3)", "tracemalloc.stop()",
                    "(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit())"),
    "finished subprocess": (
        "import subprocess\nsr = subprocess.run(['echo', 'hi'], capture_output=True, text=True)", "sr = None",
        "(sr.stdout, sr.returncode)"),
    "Popen that ended and was waited for": (
        "po = subprocess.Popen(['false']); po.wait()", "po = None", "po.returncode"),
    # ---- threads' tools, asyncio ----
    "locks": (
        "lk = [threading.Lock(), threading.RLock(), threading.Semaphore(2)]; [l.acquire() for l in lk]",
        "[l.release() for l in lk]", "(lk[0].locked(), lk[1].acquire(), lk[1].release(), lk[1].release(), lk[2]._value)"),
    "event, condition, barrier": (
        "ev = threading.Event(); ev.set(); cn = threading.Condition(); cn.acquire(); br = threading.Barrier(2)",
        "ev.clear(); cn.release(); br.abort()", "(ev.is_set(), cn.release(), br.broken)"),
    "threading.local": ("tl = threading.local(); tl.v = 5", "tl.v = 6", "tl.v"),
    "thread that has ended": ("th = threading.Thread(target=int); th.start(); th.join()", "th = None",
                              "(th.is_alive(), th.name[:6])"),
    "queue.Queue": ("import queue\nqq = queue.Queue(); qq.put(1); qq.put(2)", "qq.get()", "(qq.get(), qq.qsize())"),
    "executor not used yet": (
        "from concurrent.futures import ThreadPoolExecutor\nex = ThreadPoolExecutor(1)", "ex.shutdown()",
        "(ex.submit(divmod, 9, 4).result(), ex.shutdown())"),
    "multiprocessing lock": (
        "import multiprocessing as mp\nml = mp.Lock(); ml.acquire()", "ml.release()", "(ml.acquire(timeout=0), ml.release())"),
    "asyncio queue, event, lock": (
        "import asyncio\naq = asyncio.Queue(); aq.put_nowait(1); ae = asyncio.Event(); ae.set(); al = asyncio.Lock(); await al.acquire()",
        "aq.get_nowait(); al.release()", "(aq.get_nowait(), aq.qsize(), ae.is_set(), await ae.wait(), al.locked())"),
    "asyncio task and future that are done": (
        "at = asyncio.ensure_future(asyncio.sleep(0, 7)); await at; af = asyncio.Future(); af.set_result(3)",
        "at = af = None", "(at.result(), await at, af.result())"),
    # ---- IPython ----
    "magic and alias of the user's": (
        "get_ipython().register_magic_function(lambda line: line * 2, 'line', 'twice')\n%alias hello echo hi",
        "del get_ipython().magics_manager.magics['line']['twice']\n%unalias hello",
        "(get_ipython().run_line_magic('twice', 'ab'), get_ipython().alias_manager.is_alias('hello'))"),
    "IPython event callback": (
        "seen_e = []\ndef on_cell(*a): seen_e.append(1)\nget_ipython().events.register('post_run_cell', on_cell)",
        "get_ipython().events.unregister('post_run_cell', on_cell)",
        "on_cell in get_ipython().events.callbacks['post_run_cell']"),
    "input transformer, formatter": (
        "tr = lambda lines: [l.replace('§', '42') for l in lines]\nget_ipython().input_transformers_cleanup.append(tr)\n"
        "class Fm: pass\nget_ipython().display_formatter.formatters['text/plain'].for_type(Fm, lambda o, p, c: p.text('<fm>'))",
        "get_ipython().input_transformers_cleanup.remove(tr); "
        "get_ipython().display_formatter.formatters['text/plain'].pop(Fm)",
        "(get_ipython().transform_cell('§'), get_ipython().display_formatter.format(Fm())[0]['text/plain'])"),
    "comm target": (
        "get_ipython().kernel.comm_manager.register_target('mine', lambda c, m: None)",
        "get_ipython().kernel.comm_manager.targets.pop('mine')", "'mine' in get_ipython().kernel.comm_manager.targets"),
    "captured output": (
        "from IPython.utils.capture import capture_output\nwith capture_output() as cap: print('caught')", "cap = None",
        "cap.stdout"),
    "tqdm bar": (
        "import tqdm\nbar = tqdm.tqdm(total=9, file=io.StringIO()); _ = bar.update(4)", "bar.update(5); bar.close()",
        "(bar.n, bar.update(1), bar.n)"),
    # ---- logging ----
    "logger, handlers, filters": (
        "import logging, logging.handlers\nlg = logging.getLogger('m'); lg.setLevel(10); lg.propagate = False\n"
        "ls = io.StringIO(); lh = logging.StreamHandler(ls); lh.setFormatter(logging.Formatter('%(levelname)s %(message)s'))\n"
        "lg.addHandler(lh); lm = logging.handlers.MemoryHandler(9, target=lh); lm.handle(logging.makeLogRecord({'msg': 'held', 'levelno': 20}))",
        "lg.removeHandler(lh); lm.buffer.clear(); lg.setLevel(50)",
        "(lg.debug('d'), ls.getvalue(), len(lm.buffer), lg.level)"),
    "logging to a file": (
        "lf = logging.FileHandler('m.log', 'w'); lfl = logging.getLogger('f'); lfl.addHandler(lf); lfl.propagate = False",
        "lfl.removeHandler(lf); lf.close()", "(lfl.error('late'), lf.stream.closed, open('m.log').read())"),
    # ---- numpy, pandas, matplotlib, sklearn and others ----
    "numpy view, strides, masked": (
        "import numpy as np\na0 = np.arange(12.0).reshape(3, 4); av = a0[::2, 1:]; at_ = a0.T; am = np.ma.array([1, 2], mask=[0, 1])",
        "a0 = np.zeros(3); am.mask = False", "(a0.__setitem__((0, 1), 77.0), av.tolist(), at_[1, 0], np.shares_memory(a0, av), am.sum())"),
    "numpy structured, object, datetime": (
        "ns = np.array([(1, 'a')], [('x', 'i4'), ('y', 'U3')]); no = np.array([{}, [1]], object); nd = np.array('2026-01-01', 'M8[D]')",
        "ns['x'] = 9; no[1].append(2)", "(ns.tolist(), no.tolist(), str(nd + 1))"),
    "numpy generators": (
        "rg = np.random.default_rng(5); rg.random(); rs = np.random.RandomState(5); rs.normal(); np.random.seed(3)",
        "rg.random(9); rs.normal(); np.random.rand()", "(rg.random(), rs.normal(), float(np.random.rand()))"),
    "numpy print options, errstate": (
        "np.set_printoptions(precision=2); np.seterr(divide='raise')", "np.set_printoptions(precision=8); np.seterr(divide='warn')",
        "(str(np.array([1 / 3])), np.geterr()['divide'])"),
    "numpy memmap, read or copy": (
        "np.arange(4.0).tofile('mm.dat'); mr = np.memmap('mm.dat', mode='r'); mc = np.memmap('mm.dat', 'f8', 'c'); mc[0] = 9",
        "mc[1] = 8; mr = None", "(mr.nbytes, mc.tolist())"),
    "pandas frame, series, index": (
        "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': pd.Categorical(['x', 'y'])}, index=pd.date_range('2026', periods=2, tz='Asia/Tokyo'))\n"
        "ser = df['a']; gb = df.groupby('b', observed=True)",
        "df.loc[:, 'a'] = 0; df = df[:0]", "(df.to_json(), ser.tolist(), gb['a'].sum().tolist(), str(df.index.tz))"),
    "pandas options, rolling, reader": (
        "pd.set_option('display.max_rows', 7); ro = pd.Series([1, 2, 3]).rolling(2)\n"
        "rd = pd.read_csv('a.csv', iterator=True); rd.get_chunk(1)",
        "pd.reset_option('display.max_rows'); rd.get_chunk(1)",
        "(pd.get_option('display.max_rows'), ro.sum().tolist()[1:], rd.get_chunk(1).values.tolist())"),
    "scikit-learn models": (
        "from sklearn.linear_model import LinearRegression, LogisticRegression\nfrom sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\nfrom sklearn.ensemble import RandomForestClassifier\n"
        "X = np.arange(20.0).reshape(10, 2); y = np.arange(10) % 2\nlr = LinearRegression().fit(X, y); "
        "pl = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y); rf = RandomForestClassifier(3, random_state=0).fit(X, y)",
        "lr.fit(X, -y); pl.fit(X, 1 - y); rf = None",
        "(lr.predict(X[:2]).round(6).tolist(), pl.predict(X).tolist(), rf.predict(X).tolist())"),
    "matplotlib figure, rcParams, artists": (
        "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt\n"
        "fg, ax = plt.subplots(); ln, = ax.plot([1, 3, 2]); ax.set_title('t'); plt.rcParams['lines.linewidth'] = 4",
        "plt.close(fg); ln.set_ydata([0, 0, 0]); plt.rcdefaults(); ax.clear()",
        "(ax.get_title(), ln.get_ydata().tolist(), plt.rcParams['lines.linewidth'], fg.number in plt.get_fignums(), "
        "len((bb := io.BytesIO(), fg.savefig(bb))[0].getvalue()) > 5000)"),
    "PIL image read lazily": (
        "from PIL import Image\nImage.new('RGB', (2, 2), (1, 2, 3)).save('p.png'); im = Image.open('p.png')", "im.load(); im = None",
        "(im.size, im.getpixel((0, 0)))"),
    "openpyxl workbook": (
        "import openpyxl\nwb = openpyxl.Workbook(); wb.active['A1'] = 5", "wb.active['A1'] = 6", "wb.active['A1'].value"),
    "requests session, cookies": (
        "import requests\nrq = requests.Session(); rq.headers['x'] = '1'; rq.cookies.set('c', 'v')", "rq.cookies.clear(); rq.headers.clear()",
        "(rq.headers['x'], rq.cookies.get_dict())"),
    "jinja2 template": (
        "import jinja2\njt = jinja2.Environment().from_string('{{ a + 1 }}')", "jt = None", "jt.render(a=1)"),
    # ---- last, since it slows down all that follows ----
    "trace function": (
        "def tracer(*a): return None\nsys.settrace(tracer)", "sys.settrace(None)", "sys.gettrace() is tracer"),
}

# class or state: (set-up, name of what is listed as lost: a part of it, its kind)
DECLARED = {
    "socket pair": ("import socket\nsa, sb = socket.socketpair()", "sa", "socket"),
    "socket in a list": ("sl_ = [socket.socket()]", "descriptor", "socket"),
    "datagram socket": ("sd_ = socket.socket(type=socket.SOCK_DGRAM); sd_.bind(('127.0.0.1', 0))", "sd_", "socket"),
    "pipe": ("import os\npr, pw = os.pipe()", "pipe:", "pipe"),
    "terminal": ("tm, ts = os.openpty()", "/dev/pt", "terminal"),
    "eventfd": ("efd = os.eventfd(3)", "eventfd", "anonymous"),
    "timerfd": ("import time\ntfd = os.timerfd_create(time.CLOCK_MONOTONIC)", "timerfd", "anonymous"),
    "selector": ("import selectors\nsel = selectors.DefaultSelector(); sel.register(pr, 1)", "eventpoll", "anonymous"),
    "sqlite connection": ("import sqlite3\nq1 = sqlite3.connect('m.db')", "q1", "database"),
    "sqlite connection in an object": (
        "class Repo: pass\nrepo = Repo(); repo.c = sqlite3.connect('n.db'); _ = repo.c.execute('create table t(x)')", "n.db", "database"),
    "temporary directory": ("import tempfile\ntd = tempfile.TemporaryDirectory()", "td", "folder"),
    "temporary directory in an object": ("repo.t = tempfile.TemporaryDirectory(prefix='nested')", "nested", "folder"),
    "file deleted while open": ("fd_ = open('del', 'w+'); os.unlink('del')", "del", "file"),
    "temporary file without a name": ("tf_ = tempfile.TemporaryFile()", "deleted", "file"),
    "memfd": ("mfd = os.memfd_create('scratch')", "memfd:scratch", "file"),
    "lock of flock": ("import fcntl\nfk = open('fk', 'w'); fcntl.flock(fk, fcntl.LOCK_EX)", "fk", "lock"),
    "lock of lockf": ("fl = open('fl', 'w'); fcntl.lockf(fl, fcntl.LOCK_EX)", "fl", "lock"),
    "asyncio task that waits": ("import asyncio\nta = asyncio.ensure_future(asyncio.sleep(999))", "ta", "task"),
    "asyncio future that waits": ("fu = asyncio.get_running_loop().create_future()", "fu", "future"),
    "asyncio queue that was waited for": (
        "qu = asyncio.Queue()\ntry: await asyncio.wait_for(qu.get(), 0.01)\nexcept TimeoutError: pass", "qu", "event loop"),
    "asyncio loop of its own": ("lp = asyncio.new_event_loop()", "lp", "event loop"),
    "call_later": (
        "def late(): pass\nhandle = asyncio.get_running_loop().call_later(9999, late)", "late", "timer"),
    "add_reader": (
        "def on_read(): pass\nasyncio.get_running_loop().add_reader(pr, on_read)", "on_read", "watch"),
    "add_signal_handler": (
        "import signal\nasyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)", "SIGUSR1", "signal handler"),
    "tornado's PeriodicCallback": (
        "from tornado.ioloop import PeriodicCallback\ndef tick(): pass\npc = PeriodicCallback(tick, 1e9); pc.start()", "pc", "timer"),
    "multiprocessing pipe": ("import multiprocessing as mp\nma, mb = mp.Pipe()", "ma", "pipe"),
    "multiprocessing queue": ("mq = mp.Queue()", "descriptor", "pipe"),
    "process executor not used yet": (
        "from concurrent.futures import ProcessPoolExecutor\npx_ = ProcessPoolExecutor(1, mp_context=mp.get_context('fork'))", "px_", "executor"),
    "token of a context variable": (
        "import contextvars\nva = contextvars.ContextVar('va'); token = va.set(1)", "token", "token"),
    "widget": ("import ipywidgets\nwi = ipywidgets.IntSlider(3)", "jupyter.widget", "comm"),
    "function to be called at the exit": ("import atexit\ndef bye(): pass\n_ = atexit.register(bye)", "bye", "exit function"),
    "weakref.finalize": (
        "import weakref\nclass Fz: pass\nfz = Fz()\ndef gone_(): pass\n_ = weakref.finalize(fz, gone_)", "gone_", "exit function"),
}

# class or state: (set-up, part of the reason, what undoes it)
REFUSED = {
    "thread": ("import threading\nev = threading.Event(); th = threading.Thread(target=ev.wait, name='mine'); th.start()", "thread 'mine'", "ev.set(); th.join()"),
    "timer": ("ti = threading.Timer(999, int); ti.start()", "thread", "ti.cancel(); ti.join()"),
    "thread executor in use": (
        "from concurrent.futures import ThreadPoolExecutor\nex = ThreadPoolExecutor(2); _ = ex.submit(int).result()", "ThreadPoolExecutor", "ex.shutdown()"),
    "asyncio.to_thread": (
        "import asyncio\nawait asyncio.to_thread(int)", "thread 'asyncio_0'", "await asyncio.get_running_loop().shutdown_default_executor(); "
        "asyncio.get_running_loop()._executor_shutdown_called = False; asyncio.get_running_loop()._default_executor = None"),
    "process executor in use": (
        "from concurrent.futures import ProcessPoolExecutor as PE\nimport multiprocessing as mp\npe = PE(1, mp_context=mp.get_context('fork')); _ = pe.submit(int).result()",
        "", "pe.shutdown()"),
    "multiprocessing.Process": ("import time\nmpp = mp.get_context('fork').Process(target=time.sleep, args=(999,)); mpp.start()", "child", "mpp.kill(); mpp.join()"),
    "multiprocessing.Value": ("mpv = mp.get_context('fork').Value('i', 1)", "shared", "mpv = None; import gc; gc.collect(); import multiprocessing.heap as mh; mh.BufferWrapper._heap = mh.Heap(); gc.collect()"),
    "subprocess.Popen": ("import subprocess\npo = subprocess.Popen(['sleep', '999'])", "child", "po.kill(); po.wait()"),
    "asyncio subprocess": (
        "ap = await asyncio.create_subprocess_exec('sleep', '999')", "", "ap.kill(); await ap.wait()"),
    "shared memory": (
        "from multiprocessing import shared_memory\nsm = shared_memory.SharedMemory(create=True, size=64, track=False)", "shared", "sm.close(); sm.unlink()"),
    "numpy memmap, writable": ("import numpy as np\nmw = np.memmap('w.dat', 'u1', 'w+', shape=(9,))", "w.dat", "del mw"),
    "shared anonymous mmap": ("import mmap\nmz = mmap.mmap(-1, 64)", "shared", "mz.close()"),
    "listening socket": ("import socket\nls_ = socket.create_server(('127.0.0.1', 0))", "listens", "ls_.close()"),
    "asyncio server": (
        "sv = await asyncio.start_server(lambda r, w: None, '127.0.0.1', 0)", "listens", "sv.close(); await sv.wait_closed()"),
    "HTTP server": (
        "import http.server\nhs = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)", "listens", "hs.server_close()"),
    "logging.handlers.QueueListener": (
        "import logging.handlers, queue\nql = logging.handlers.QueueListener(queue.Queue(), logging.NullHandler()); ql.start()", "thread", "ql.stop()"),
    "faulthandler's timer": ("import faulthandler, os\nfh = open('fh', 'w'); faulthandler.dump_traceback_later(9999, file=fh)", "thread", "faulthandler.cancel_dump_traceback_later()"),
    "shelve, which maps sqlite's WAL": ("import shelve\nsh = shelve.open('sh'); sh['k'] = 1", "sh-shm", "sh.close()"),
    "ZeroMQ context": ("import zmq\nzc = zmq.Context(); zs = zc.socket(zmq.PAIR)", "ZeroMQ", "zs.close(); zc.term()"),
}
