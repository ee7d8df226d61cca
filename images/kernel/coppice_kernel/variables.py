"""What a namespace holds: name, type, shape and bytes of each variable, without running its code.

Only exact types that are known here are asked anything, and only what their own C code answers or
what lies in them as plain attributes: no __len__, __repr__, property, __getattr__, __hash__ or
metaclass of the user's is ever called. Of everything else the name of its type is told.
"""

import gc
import sys
from builtins import dict, id, len, list, reversed, set, str, tuple, type
from itertools import islice
from sys import getsizeof
from time import perf_counter
from types import ModuleType

COUNT_MAX = 300
BYTES_MAX = 40000  # of JSON: in quotes and with its fields it fits into one packet of `ctl`
NAME_MAX = 200  # characters
DIMENSIONS_MAX = 8
BUDGET_S = 0.005
STEP = 16  # variables between two looks at the clock

_type_name = type.__dict__["__name__"].__get__
_flags = type.__dict__["__flags__"].__get__
_MADE_BY_A_CLASS_STATEMENT = 1 << 9


def _text(value):
    """An exact str: names may be set to a subclass with methods of its own."""
    return value if type(value) is str else str.__str__(value)


def _scalar(value):
    return [], getsizeof(value)


def _counted(value):
    return [len(value)], getsizeof(value)


def _array(value):
    shape = value.shape
    return (list(shape) if len(shape) <= DIMENSIONS_MAX else None), value.nbytes


_BUILTIN = {
    id(kind): ask
    for ask, kinds in (
        (_scalar, (type(None), bool, int, float, complex)),
        (_counted, (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)),
    )
    for kind in kinds
}


def _member(module, name):
    """A module's member as it is now, or None; never what a module's __getattr__ makes up."""
    found = sys.modules.get(module)
    return found.__dict__.get(name) if type(found) is ModuleType else None


class _Pandas:
    """The parts of tables: a manager with axes and blocks of arrays."""

    def __init__(self, ndarray):
        managers = "pandas.core.internals.managers"
        self.ndarray = ndarray
        self.managers = (_member(managers, "BlockManager"), _member(managers, "SingleBlockManager"))
        self.range_index = _member("pandas.core.indexes.range", "RangeIndex")
        self.indexes = (
            _member("pandas.core.indexes.base", "Index"),
            _member("pandas.core.indexes.datetimes", "DatetimeIndex"),
        )
        self.times = _member("pandas.core.arrays.datetimes", "DatetimeArray")
        self.tables = (_member("pandas.core.frame", "DataFrame"), _member("pandas.core.series", "Series"))

    def length(self, index):
        """None: not to be told."""
        kind = type(index)
        if kind is self.range_index:
            return len(index._range)
        if not any(kind is known for known in self.indexes):
            return None
        data = index._data
        if type(data) is self.times:
            data = data._ndarray
        return data.shape[0] if type(data) is self.ndarray else None

    def ask(self, table):
        manager = table._mgr
        if not any(type(manager) is known for known in self.managers):
            return None, None
        lengths = [self.length(axis) for axis in islice(manager.axes, 2)]
        shape = lengths[::-1] if len(lengths) == 2 else lengths  # columns come first in it
        if any(n is None for n in shape):
            shape = None
        size = 0
        for block in islice(manager.blocks, 1000):
            if type(block.values) is not self.ndarray:
                return shape, None
            size += block.values.nbytes
        return shape, size


def _askers():
    """id of a type -> how to ask. By id, since a type's own hash may be user code."""
    askers = dict(_BUILTIN)
    ndarray = _member("numpy", "ndarray")
    if type(ndarray) is type and not _flags(ndarray) & _MADE_BY_A_CLASS_STATEMENT:
        askers[id(ndarray)] = _array
        if "pandas" in sys.modules:
            pandas = _Pandas(ndarray)
            for kind in pandas.tables:
                if type(kind) is type:
                    askers[id(kind)] = pandas.ask
    return askers


def _row(name, value, askers):
    kind = type(value)
    shape = size = None
    ask = askers.get(id(kind))
    if ask:
        try:
            shape, size = ask(value)
        except Exception:  # another version of the library: its type is told
            shape = size = None
    called = _text(_type_name(kind))[:NAME_MAX]
    return {
        "name": name,
        "type": called if called.isprintable() else "?",
        "shape": shape,
        "bytes": size,
    }


def _cost(row):
    """Bytes of a row as JSON, from above."""
    plain = row["name"].isascii() and row["type"].isascii()
    return 80 + 20 * len(row["shape"] or ()) + (2 if plain else 12) * len(row["name"] + row["type"])


def _is_users(name, value, hidden):
    return type(name) is str and name[:1] != "_" and hidden.get(name, hidden) is not value


def _look(namespace, hidden, clock, end, disturbed):
    askers = _askers()
    rows, complete, cost = [], True, 0
    seen = 0
    # The newest first: they are what is looked for when not all fit.
    for name, value in reversed(namespace.items()):
        if not _is_users(name, value, hidden):
            continue
        seen += 1
        if seen % STEP == 0:
            if disturbed():
                return None
            if clock() > end:
                complete = False
                break
        if len(name) > NAME_MAX or not name.isprintable():
            complete = False
            continue
        row = _row(name, value, askers)
        cost += _cost(row)
        if len(rows) == COUNT_MAX or cost > BYTES_MAX:
            complete = False
            break
        rows.append(row)
    rows.reverse()
    return {"variables": rows, "complete": complete}


def look(namespace, hidden, disturbed=lambda: False, clock=perf_counter, budget_s=BUDGET_S):
    """{"variables": [...], "complete": bool}, or None where it was disturbed, or cannot be known.
    `hidden`: what was there before the user."""
    if type(namespace) is not dict or type(hidden) is not dict:
        return None
    collecting = gc.isenabled()
    gc.disable()  # a collection takes longer than the budget, and runs finalizers
    try:
        return _look(namespace, hidden, clock, clock() + budget_s, disturbed)
    except RuntimeError:
        return None  # a thread changed the namespace meanwhile
    finally:
        if collecting:
            gc.enable()
