"""Big outputs: 20 of 5 MB in one cell, and 100 MB in one message; bytes that came per second from
the request to the last of them."""

import peers
import reading
import server
import sides
from run import table

MB = 1000000
COLUMNS = [("outputs", "asked", "d"), ("came", "came", "d"), ("mb", "MB came", ".1f"),
           ("mb_s", "MB/s", ".1f"), ("ended", "cell ended", "")]


def code(outputs, size):
    return ("from IPython.display import display\n"
            f"for i in range({outputs}): display({{'text/plain': 'x' * {size}}}, raw=True)")


def row(side, outputs, got):
    mb = got["bytes"] / MB
    return {"side": side, "outputs": outputs, "came": got["lines"], "mb": mb,
            "mb_s": mb / got["from_request"] if got["lines"] else 0.0,
            "ended": "yes" if got["idle"] else "no"}


def through(gateway, kernel, text):
    framing = gateway.framings[0]
    with gateway.client(kernel, framing, True) as client:
        client.execute("1")
        return reading.over_socket(client, framing, text, gateway.pid)


def straight(kernel, text):
    with sides.direct(kernel) as client:
        client.execute("1")
        return reading.direct(client, kernel, text)


def one_size(run, coppice, others, outputs, size):
    rows, text, what = [], code(outputs, size), f"{outputs} x {size} bytes"
    with run.attempt(rows, "direct docker", what), coppice.client("docker"):
        with sides.twin(coppice.run_dir) as k:
            rows.append(row("direct docker", outputs, straight(k, text)))
    with run.attempt(rows, "direct process", what):
        with sides.process_kernel(run.home, "python3") as k:
            rows.append(row("direct process", outputs, straight(k, text)))
    for name, gateway, kernel in [
            ("coppice docker", coppice, "docker"), ("coppice process", coppice, "python3"),
            *((p.name, p, "python3") for p in others)]:
        with run.attempt(rows, name, what):
            rows.append(row(name, outputs, through(gateway, kernel, text)))
    table(f"bulk: {outputs} x {size / MB:g} MB in a cell", COLUMNS, rows)
    return rows


def measure(run):
    many, one = run.pick((2, MB), (20, 5 * MB), (20, 5 * MB)), (1, run.pick(MB, 100 * MB, 100 * MB))
    with server.Coppice(run.home) as coppice, peers.all_of(run) as others:
        return {f"{n} x {size // MB} MB": one_size(run, coppice, others, n, size)
                for n, size in (many, one)}
