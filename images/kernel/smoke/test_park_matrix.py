"""The class matrix (park_matrix.py) in the image: each row is equal after a revive, or declared, or the
kernel is not parked and says why. None may be wrong in silence."""

import json

from park_matrix import DECLARED, EQUAL, REFUSED
from test_park import ground  # noqa: F401

TABLE = {}


def apart(cells):
    """Two: one that awaits runs in a context of its own, which ends with it."""
    return [[c for c in cells if "await " not in c], [c for c in cells if "await " in c]]


def run_all(client, cells):
    for these in apart(cells):
        reply, seen = client.execute("\n".join(these))
        assert reply["status"] == "ok", reply
    streams = [m["content"] for m in seen if m["header"]["msg_type"] == "stream"]
    return "".join(s["text"] for s in streams if s["name"] == "stdout")


def answers(client):
    """Of all rows: what each is, or what it raised."""
    cells = [
        f"try: found_[{row!r}] = repr(({ask}))\nexcept BaseException as e_: found_[{row!r}] = 'raised ' + repr(e_)"
        for row, (_, _, ask) in EQUAL.items()
    ]
    told = run_all(client, ["import json; found_ = {}", *cells, "print(json.dumps(found_)) # await "])
    return json.loads(told.splitlines()[-1])


def test_equal(ground):  # noqa: F811
    alone = ground.start()
    run_all(alone, [setup for setup, _, _ in EQUAL.values()])
    wanted = answers(alone)
    assert not {row: text for row, text in wanted.items() if text.startswith("raised")}
    ground.kill(alone)

    client = ground.start()
    run_all(client, [setup for setup, _, _ in EQUAL.values()])
    park = ground.park(client, "pass")
    assert park["lost"] == []
    run_all(client, [change for _, change, _ in EQUAL.values()])
    changed = answers(client)
    unchanged = [row for row in EQUAL if changed[row] == wanted[row]]
    assert not unchanged, "their change changes nothing: they would pass whatever is revived"
    second = ground.revive(park)
    for row, found in answers(second).items():
        TABLE[row] = "equal" if found == wanted[row] else f"WRONG: {found} instead of {wanted[row]}"
    wrong = {row: text for row, text in TABLE.items() if text.startswith("WRONG")}
    assert not wrong


def test_declared(ground):  # noqa: F811
    """All in one state. What is told of each is told before the user goes back, or of a file, after."""
    client = ground.start()
    run_all(client, [setup for setup, _, _ in DECLARED.values()])
    park = ground.park(client, "pass")
    second = ground.revive(park)
    silent = []
    for row, (_, name, kind) in DECLARED.items():
        told = [loss for loss in second.told["lost"] if name in loss["name"] and loss["kind"] == kind]
        TABLE[row] = f"declared: {told[0]['reason']}" if told else "WRONG: not declared"
        silent += [] if told else [row]
    assert not silent, second.told["lost"]
    assert second.run("print(6 * 7)") == "42\n"


def test_refused(ground):  # noqa: F811
    """Each in a state of its own; once it is undone the kernel can be parked."""
    client = ground.start()
    for row, (setup, reason, undo) in REFUSED.items():
        found = ground.refusal(client, setup)
        assert reason in found, row
        TABLE[row] = f"refused: {found}"
        assert ground.park(client, undo)["digest"], row


def test_the_table(capsys):
    with capsys.disabled():
        print()
        for row, found in TABLE.items():
            print(f"  {row:44} {found}")
    assert len(TABLE) == len(EQUAL) + len(DECLARED) + len(REFUSED) >= 60
