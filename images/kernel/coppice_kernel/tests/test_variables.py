"""The look at a namespace: what it tells, what it leaves out, and that no code of the user's runs."""

import gc
import json
import sys
import types

import pytest

from coppice_kernel import variables
from coppice_kernel.variables import look


def rows(namespace, hidden=None, **options):
    found = look(namespace, hidden or {}, **options)
    return {v["name"]: v for v in found["variables"]}, found["complete"]


def test_what_python_itself_has():
    found, complete = rows(
        {"n": 1, "f": 1.5, "s": "höchst", "l": [1, 2], "d": {"a": 1}, "none": None, "r": range(7)}
    )
    assert complete
    assert {k: (v["type"], v["shape"]) for k, v in found.items()} == {
        "n": ("int", []),
        "f": ("float", []),
        "s": ("str", [6]),
        "l": ("list", [2]),
        "d": ("dict", [1]),
        "none": ("NoneType", []),
        "r": ("range", [7]),
    }
    assert found["s"]["bytes"] == sys.getsizeof("höchst")


def test_in_the_order_of_the_namespace():
    found = look({"b": 1, "a": 2, "c": 3}, {})
    assert [v["name"] for v in found["variables"]] == ["b", "a", "c"]


def test_what_was_there_before_and_what_is_private_is_left_out():
    hidden = {"exit": len, "In": [], "quit": None}
    found, complete = rows({"exit": len, "In": [], "_x": 1, "__": 2, "quit": 3, "mine": 4}, hidden)
    assert complete and set(found) == {"In", "quit", "mine"}  # other objects under known names


class Meta(type):
    ran = []

    def __hash__(cls):
        Meta.ran.append("hash")
        return 1

    def __eq__(cls, other):
        Meta.ran.append("eq")
        return True

    def __getattribute__(cls, name):
        Meta.ran.append(name)
        return super().__getattribute__(name)

    @property
    def __name__(cls):
        Meta.ran.append("name")
        return "a lie"


def noisy(name):
    def method(self, *args):
        Meta.ran.append(name)
        raise SystemExit(name)

    return method


METHODS = ("__repr__", "__str__", "__len__", "__sizeof__", "__getattribute__", "__hash__", "__eq__",
           "__bool__", "__iter__", "__format__", "__del__", "__array__", "__getitem__")


@pytest.mark.parametrize("base", [object, list, dict, str, int, float, set])
def test_no_code_of_the_user_runs(base):
    kind = Meta("Noisy", (base,), {**{m: noisy(m) for m in METHODS if m != "__del__"},
                                   "shape": property(noisy("shape")), "nbytes": property(noisy("nbytes"))})
    namespace = {"it": base.__new__(kind), "kind": kind}
    Meta.ran.clear()
    found = look(namespace, {})
    assert Meta.ran == []
    assert found["variables"][0] == {"name": "it", "type": "Noisy", "shape": None, "bytes": None}


def test_a_class_that_calls_itself_an_array(monkeypatch):
    fake = types.ModuleType("numpy")
    fake.ndarray = type("ndarray", (), {"shape": property(noisy("shape"))})
    monkeypatch.setitem(sys.modules, "numpy", fake)
    Meta.ran.clear()
    found, _ = rows({"a": fake.ndarray()})
    assert Meta.ran == [] and found["a"]["shape"] is None


def test_a_module_that_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", type("M", (), {"__getattr__": noisy("numpy")})())
    Meta.ran.clear()
    assert rows({"a": 1})[0]["a"]["type"] == "int" and Meta.ran == []


def test_names_that_are_texts_of_the_user():
    class Text(str):
        __slots__ = ()
        __getitem__ = noisy("getitem")
        __str__ = isprintable = noisy("str")

    kind = type("K", (), {})
    kind.__name__ = Text("Käfer")
    Meta.ran.clear()
    found, _ = rows({"k": kind(), Text("odd"): 1})
    assert found["k"]["type"] == "Käfer" and Meta.ran == [] and "odd" not in found


@pytest.mark.parametrize("name", ["\ud800", "x" * 201, "a\nb", "\0"])
def test_names_that_cannot_be_told(name):
    found, complete = rows({name: 1, "fine": 2})
    assert set(found) == {"fine"} and not complete


def test_many_are_cut_from_the_oldest_on():
    found, complete = rows({f"v{n}": n for n in range(100000)})
    assert not complete and 0 < len(found) <= variables.COUNT_MAX
    assert "v99999" in found and "v0" not in found


def test_it_fits_into_a_packet_whatever_the_names_are():
    found = look({"𠀀" * 150 + str(n): 1 for n in range(1000)}, {})
    assert not found["complete"]
    assert len(json.dumps(json.dumps(found))) < 60000


def test_the_budget_ends_it():
    times = iter(range(1000))
    found, complete = rows(
        {f"v{n}": n for n in range(200)}, clock=lambda: next(times), budget_s=2
    )
    assert not complete and 0 < len(found) < 200


def test_a_disturbance_ends_it_without_a_word():
    assert look({f"v{n}": n for n in range(200)}, {}, disturbed=lambda: True) is None


def test_collection_is_put_off_and_comes_back():
    seen = []
    look({f"v{n}": n for n in range(200)}, {}, disturbed=lambda: seen.append(gc.isenabled()))
    assert seen and not any(seen) and gc.isenabled()


@pytest.mark.parametrize("namespace", [None, [], type("D", (dict,), {})(a=1)])
def test_a_namespace_that_is_none(namespace):
    assert look(namespace, {}) is None
