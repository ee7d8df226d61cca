"""`%coppice log`, `show`, `status`, `use`: the history of this kernel, in the notebook.

What is asked goes over the outbox's link to the supervisor and over `ctl` to the gateway, which
answers about this kernel's own history alone. What comes is drawn as text and as HTML.
"""

import html
import json
import shlex

from IPython.core.error import UsageError
from IPython.display import publish_display_data

TIMEOUT_S = 30
SHOWN_LINES = 40  # of an output
USAGE = """%coppice log          the executions of this history, newest first
%coppice show N       one of them: its code, output and variables. N is an execution count,
                      the beginning of a node's id, a branch, HEAD or HEAD~2
%coppice status       where this kernel stands
%coppice use NAME     go on in the history of that name or id from the next cell on"""


class Magics:
    def __init__(self, ask):
        self._ask = ask  # takes what, about, timeout_s; (status, text)

    def register(self, shell):
        shell.register_magic_function(self.coppice, "line", "coppice")

    def coppice(self, line=""):
        """The history of this kernel; %coppice alone tells more."""
        try:
            words = shlex.split(line)
        except ValueError as e:
            raise UsageError(f"%coppice: {e}") from None
        if not words:
            print(USAGE)
            return
        verb, rest = words[0], words[1:]
        draw = {"log": self.log, "show": self.show, "status": self.status, "use": self.use}.get(verb)
        if draw is None:
            raise UsageError(f"%coppice {verb}: there is log, show, status and use")
        wanted = 1 if verb in ("show", "use") else 0
        if len(rest) != wanted:
            names = {"show": "one node, as in `%coppice show 4`",
                     "use": "one history, as in `%coppice use walk`"}
            raise UsageError(f"%coppice {verb}: takes {names.get(verb, 'nothing more')}")
        draw(*rest)

    def answer(self, what, about=""):
        status, text = self._ask(what, about, TIMEOUT_S)
        if status != "ok":
            raise UsageError(f"%coppice {what}: {text}")
        return json.loads(text)

    def log(self):
        draw(log_text, log_html, self.answer("log"))

    def show(self, name):
        draw(show_text, show_html, self.answer("show", f"In[{name}]" if name.isdigit() else name))

    def status(self):
        draw(status_text, status_html, self.answer("status"))

    def use(self, name):
        self.answer("use", name)
        print(f"From the next cell on this kernel is recorded in the history {name!r}.")


def draw(as_text, as_html, found):
    publish_display_data({"text/plain": as_text(found), "text/html": as_html(found)})


def _mark(node):
    """How it is called in a line: what was counted, or what it is."""
    if node["kind"] == "root":
        return "begin"
    count = node["execution_count"]
    return "[ ]" if count is None else f"[{count}]"


def _title(node):
    failed = node["kind"] != "root" and node["status"] != "ok"
    branches = f"({', '.join(node['branches'])})" if node["branches"] else ""
    return [w for w in (branches, f"{node['status']}:" if failed else "", node["summary"]) if w]


def log_text(found):
    lines = [f"History {found['name']}"]
    lines += [f"{n['id'][:8]} {_mark(n):>6} {' '.join(_title(n))}".rstrip() for n in found["nodes"]]
    if found["next"]:
        lines.append("... and older ones")
    return "\n".join(lines)


def _table(rows, head=()):
    made = "".join(f"<th>{html.escape(h)}</th>" for h in head)
    made = f"<tr>{made}</tr>" if made else ""
    for row in rows:
        made += "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
    return f'<table style="text-align:left">{made}</table>'


def log_html(found):
    rows = [
        (n["id"][:8], _mark(n), ", ".join(n["branches"]), "" if n["kind"] == "root" else n["status"],
         n["summary"], (n["started"] or "")[:19].replace("T", " "))
        for n in found["nodes"]
    ]
    more = "<p>... and older ones</p>" if found["next"] else ""
    head = ("node", "In", "branch", "status", "code", "started (UTC)")
    return f"<p>History <b>{html.escape(found['name'])}</b></p>{_table(rows, head)}{more}"


def _joined(value):
    return "".join(value) if isinstance(value, list) else str(value)


def _output_text(output):
    kind = output.get("output_type")
    if kind == "stream":
        return _joined(output.get("text", ""))
    if kind == "error":
        return f"{output.get('ename', '')}: {output.get('evalue', '')}"
    data = output.get("data", {})
    return _joined(data["text/plain"]) if "text/plain" in data else f"<{', '.join(data)}>"


def _outputs(node):
    if node["outputs"] is None:
        return ["(the outputs are too large to be shown here)"]
    lines = []
    for output in node["outputs"]:
        these = _output_text(output).rstrip("\n").split("\n")
        left = len(these) - SHOWN_LINES
        lines += these[:SHOWN_LINES] + ([f"... {left} more lines"] if left > 0 else [])
    return lines


def _facts(node):
    facts = [("node", node["id"]), ("parent", node["parent"] or "none"), ("status", node["status"])]
    if node["kind"] != "root":
        facts += [("In", _mark(node)), ("started", node["started"] or ""),
                  ("took", f"{node['duration_ms']} ms")]
    if node["branches"]:
        facts.append(("branches", ", ".join(node["branches"])))
    return facts


def _shape(variable):
    shape = variable["shape"]
    return "" if not shape else " x ".join(map(str, shape))


def _variables(node):
    return [(v["name"], v["type"], _shape(v), "" if v["bytes"] is None else v["bytes"])
            for v in node["variables"] or ()]


def _about_variables(node):
    """A sentence where the list is not all."""
    if node["variables"] is None:
        return "Variables were not looked at: another cell followed at once."
    if not node["variables_complete"]:
        return "Not all variables are listed."
    return "" if node["variables"] else "There were no variables."


def show_text(node):
    parts = ["\n".join(f"{k:9}{v}" for k, v in _facts(node))]
    if node["code"]:
        parts.append("\n".join(f"    {line}" for line in node["code"].split("\n")))
    if outputs := _outputs(node):
        parts.append("\n".join(outputs))
    rows = [f"{name}: {kind} {shape}".rstrip() + (f", {size} bytes" if size != "" else "")
            for name, kind, shape, size in _variables(node)]
    parts.append("\n".join([*rows, _about_variables(node)]).strip())
    return "\n\n".join(p for p in parts if p)


def show_html(node):
    made = _table(_facts(node))
    if node["code"]:
        made += f"<pre>{html.escape(node['code'])}</pre>"
    if outputs := _outputs(node):
        made += f"<pre>{html.escape(chr(10).join(outputs))}</pre>"
    if rows := _variables(node):
        made += _table(rows, ("variable", "type", "shape", "bytes"))
    about = _about_variables(node)
    return made + (f"<p>{html.escape(about)}</p>" if about else "")


def _stands(found):
    rows = [("kernel", found["id"]), ("history", found["history_id"] or f"{found['history']} (new)"),
            ("branch", found["branch"] or "none yet"), ("node", found["node"] or "none yet"),
            ("state version", int(found["state_version"]))]
    if found.get("unrecorded"):
        rows.append(("not recorded yet", int(found["unrecorded"])))
    if found.get("not_recorded"):
        rows.append(("cannot be recorded", found["not_recorded"]))
    return rows


def status_text(found):
    return "\n".join(f"{k:18} {v}" for k, v in _stands(found))


def status_html(found):
    return _table(_stands(found))
