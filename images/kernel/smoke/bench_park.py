"""How long a park and a way back to it take in the image: python3 bench_park.py [--image NAME]

What is told: milliseconds, median of the rounds. `unparked`, `parked`: a trivial cell after a pause
without and with a park. `blocked`: how long the kernel's main thread is away for a park. `revived`: from
the revive sent to the reply of a first execute in the new kernel. `write`: all of the state in place,
before there was a park, and the first and second time after it.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from coppice_kernel.tests.fakegateway import FakeGateway  # noqa: E402
from coppice_kernel.tests.ground import Ground  # noqa: E402
from engine_api import Container  # noqa: E402

WATCH = """
import time
from coppice_kernel import park as p
real = p.Parker.park
def park(self, *a):
    global took
    t = time.perf_counter()
    real(self, *a)
    took = time.perf_counter() - t
p.Parker.park = park
"""
STATES = {
    "20 scalars": ("x = 1", "x += 1", 1 << 30),
    "numpy 250 MB": ("import numpy as np; a = np.ones(250 << 17)", "a += 1", 1 << 30),
    "numpy 1 GB": ("import numpy as np; a = np.ones(1 << 27)", "a += 1", 4 << 30),
}


def timed(f):
    began = time.perf_counter()
    result = f()
    return 1000 * (time.perf_counter() - began), result


def measure(image, preimport, code, write, memory, rounds):
    with tempfile.TemporaryDirectory(prefix="coppice-bench-") as folder:
        gateway = FakeGateway(folder, timeout_s=120)
        seccomp = (HERE.parent / "seccomp.json").read_text()
        environment = [] if preimport else ["COPPICE_PREIMPORT=coppice_kernel.kernel"]
        container = Container(image, folder, seccomp, memory=memory, environment=environment)
        hello = gateway.accept(reports=True, parks_max=16)
        ground = Ground(gateway, hello["pid"])
        found = {}
        try:
            for _ in range(rounds):
                for name, took in one(ground, code, write).items():
                    found.setdefault(name, []).append(took)
        finally:
            gateway.close()
            container.remove()
    return {k: statistics.median(v) for k, v in found.items()}


def connect(ground, **more):
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True, **more)


def written(client, write):
    code = f"t = time.perf_counter(); {write}; print(time.perf_counter() - t)"
    return 1000 * float(client.run(code))


def one(ground, code, write):
    connect(ground)  # whatever was parked goes
    client, found = ground.start(), {}
    ground.run(client, code)
    ground.run(client, WATCH)
    written(client, write)
    found["write before"] = written(client, write)
    time.sleep(0.5)
    found["unparked"] = timed(lambda: client.run("y = 1"))[0]
    connect(ground, parks_max=16)
    park = ground.park(client, "pass")
    time.sleep(0.5)  # as above: what the parked process itself does first is over
    found["parked"] = timed(lambda: client.run("y = 1"))[0]
    found["blocked"] = 1000 * float(client.run("print(took)"))
    ground.gateway.seen.clear()
    found["revived"], second = timed(lambda: begin(ground, park))
    found["write"], found["write again"] = written(second, write), written(second, write)
    second.close()
    ground.gateway.kill(second.line)
    ground.kill(client)
    return found


def begin(ground, park):
    ground.line += 1
    found = ground.gateway.revive(ground.line, park["park"])
    assert found["digest"] == json.loads(park["data"])["digest"], found
    client = ground.gateway.client(ground.line)
    client.line = ground.line
    msg_id = client.send("shell", "execute_request", {"code": "y = 1"})
    assert client.reply("shell", msg_id)["content"]["status"] == "ok"
    return client


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--image", default="coppice-kernel")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name, (code, write, memory) in STATES.items():
        for preimport in (True, False):
            found = measure(options.image, preimport, code, write, memory, options.rounds)
            told = ", ".join(f"{k} {v:.1f}" for k, v in found.items())
            print(f"{name}, {'with' if preimport else 'without'} pre-import: {told}", flush=True)


if __name__ == "__main__":
    main()
