"""Working files in the image (docs/decisions/0028): the scenes of coppice_kernel's own tests in /work, a
branch beside in /branches, and what needs the image's limits."""

import pytest

from coppice_kernel.tests.files_scenes import *  # noqa: F403
from coppice_kernel.tests.ground import Ground
from coppice_kernel.tests.keeper import Keeper

PARKS = 16
TMPFS = {"/branches": "rw,nosuid,nodev,uid=1000,gid=1000,mode=0700,size=64m"}


def ground_of(place):
    place.gateway.hang_up()
    hello = place.gateway.accept(reports=True, parks_max=PARKS, files=True)
    assert hello["files"]
    found = Ground(place.gateway, hello["pid"])
    found.keeper = Keeper(place.gateway)
    found.line = place.line
    return found


@pytest.fixture
def ground(shared):
    found = ground_of(shared)
    sweeper = found.start()
    ask(found, sweeper, SWEEP)  # noqa: F405
    found.kill(sweeper)
    found.keeper.now = {}
    shared.gateway.hang_up()
    shared.gateway.accept(reports=True, parks_max=PARKS, files=True)
    yield found
    found.end_lines()
    shared.line = found.line
    shared.gateway.hang_up()
    shared.gateway.accept()  # wants neither parks nor files
    shared.gateway.seen.clear()


SWEEP = """
import os, shutil
for name in os.listdir(b"/work"):
    path = b"/work/" + name
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
"""


def test_a_branch_beside(make_place):
    """Its own folder, filled from the node; the other line's stays as it is."""
    ground = ground_of(make_place(tmpfs=TMPFS))
    first = ground.start()
    told(ground, first, "import os, pathlib; here = pathlib.Path('/work/f'); text = '/work/sub'; other = '/tmp/x'")
    park, state = parked(
        ground,
        first,
        "os.makedirs('sub'); open('f', 'w').write('123456'); f = open('f', 'r+'); f.read(2); os.chdir('sub')\n"
        "open('g', 'w').write('g'); None",
    )
    told(ground, first, "os.chdir('/work'); open('f', 'w').write('first goes on'); None")
    answer = ground.keeper.lay("/branches/b-1", state)
    assert answer["ready"], answer
    ground.keeper.now = dict(ground.keeper.before)  # of /work
    beside = ground.revive(park, cwd="/branches/b-1")
    ground.keeper.end(f"lay-{ground.keeper.lays}", True)
    held = {(found["name"], found["kind"]) for found in beside.told["paths"]}
    assert {("here", "path"), ("text", "path")} <= held and ("other", "path") not in held
    work, ground.keeper.now = ground.keeper.now, dict(state)
    assert ask(ground, beside, "print(os.getcwd(), f.read(), open('g').read())") == "/branches/b-1/sub 3456 g\n"
    change = told(ground, beside, "f.write('+'); f.flush()")
    assert paths(change) == ["f"] and change["removed"] == []
    ground.keeper.now = work
    assert ask(ground, first, "print(open('/work/f').read())") == "first goes on\n"
    change = told(ground, first, "open('h', 'w').close()")
    assert paths(change) == ["h"] and change["removed"] == []


def test_a_place_that_is_not_there(make_place):
    ground = ground_of(make_place())
    assert "cannot be made" in ground.keeper.lay("/branches/b-1", {})["reason"]


def test_there_is_no_room(make_place):
    """/work is full of what is not kept: nothing is laid down, nothing has changed."""
    ground = ground_of(make_place())
    client = ground.start()
    told(ground, client, "import os; open('kept', 'wb').write(os.urandom(1 << 20) * 40); None")
    state = dict(ground.keeper.now)
    told(ground, client, "os.remove('kept')\nfor n in range(3): open(f'huge{n}', 'wb').write(bytes(80 << 20))")
    answer = ground.keeper.lay("/work", state)
    assert "there is no room" in answer["reason"], answer
    assert ask(ground, client, "print(sorted(os.listdir('/work')))") == "['huge0', 'huge1', 'huge2']\n"


def test_with_the_limits_of_the_budget(make_place):
    """10,000 files and more: what is over is said, the rest is told and comes back."""
    ground = ground_of(make_place())
    client = ground.start()
    told(ground, client, "import os")
    park, state = parked(
        ground, client, "os.mkdir('many')\nfor n in range(10010): open(f'many/{n}', 'w').write('x' * (n % 7))"
    )
    over = [e for e in state.values() if "lost" in e]
    assert len(state) == 10010 and {e["lost"] for e in over} == {"not kept: over the budget of 10,000 files"}
    told(ground, client, "import shutil; shutil.rmtree('many')")
    second = go_back(ground, client, park, state)
    assert ask(ground, second, "print(len(os.listdir('many')))") == "10000\n"


def test_what_a_look_costs(make_place, capsys):
    """Printed, not judged: microseconds of a look in a kernel of the image, as each cell has it."""
    ground = ground_of(make_place())
    client = ground.start()
    told(ground, client, COST)
    with capsys.disabled():
        print()
        for count in (0, 10, 100, 1000):
            print(" ", ask(ground, client, f"cost({count})").strip())


COST = """
import os, shutil, statistics, time
from coppice_kernel import files
class Nobody:
    files = True
    def files_under_way(self): return 0
    def hand_files(self, fds, **fields): return True
def cost(count):
    shutil.rmtree("/work/cost", ignore_errors=True); os.mkdir("/work/cost")
    for n in range(count): open(f"/work/cost/{n}.txt", "w").write("content")
    time.sleep(0.05)
    looks = files.Files("/work/cost", Nobody()); looks.reply("1"); looks.hand()
    taken = []
    for _ in range(400):
        looks._seconds = 0
        begin = time.perf_counter(); word = looks.reply("2"); taken.append(time.perf_counter() - begin)
        assert word == "same"
    print(f"{count:5} files: median {statistics.median(taken) * 1e6:.0f} us, least {min(taken) * 1e6:.0f} us")
"""
