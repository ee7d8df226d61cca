"""`%coppice log`, `show`, `status`, `use`, `checkout`, `undo`, `branch`, `release`, `forget`: the history.

What is asked goes over the outbox's link to the supervisor and over `ctl` to the gateway, which
answers about this kernel's own history alone. What comes is drawn as text and as HTML. Going back
is only asked for here: the gateway carries it out once this cell has ended, and then says what came
of it.
"""

import html
import json
import shlex

from IPython.core.error import UsageError
from IPython.display import publish_display_data

TIMEOUT_S = 30
FORGET_TIMEOUT_S = 600  # a long history is written again
SHOWN_RENAMED = 20  # nodes whose ids changed
SHOWN_LINES = 40  # of an output
USAGE = """%coppice log          the executions of this history, newest first
%coppice show N       one of them: its code, output and variables. N is an execution count,
                      the beginning of a node's id, a branch, HEAD or HEAD~2
%coppice status       where this kernel stands
%coppice use NAME     go on in the history of that name or id from the next cell on
%coppice checkout N   go back: memory as it was after that execution, named as for show
%coppice undo         go back to where the kernel stood before the last cell
%coppice branch N NAME
                      a branch begins there as a kernel of its own, and this one goes on; without
                      N it begins where this kernel stands, without NAME it is main.2, main.3 ...
%coppice release      keep no state of before: nothing that was parked until now can be gone back to
%coppice forget N     take what that execution said out of the history, for good"""

VERBS = {  # what each is given, as a sentence says it; None: nothing
    "log": None,
    "show": "one node, as in `%coppice show 4`",
    "status": None,
    "use": "one history, as in `%coppice use walk`",
    "checkout": "one node, as in `%coppice checkout 4`",
    "undo": None,
    "branch": "a node and a name at most, as in `%coppice branch 4 other`",
    "release": None,
    "forget": "one node, as in `%coppice forget 4`",
}


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
        if verb not in VERBS:
            raise UsageError(
                f"%coppice {verb}: there is log, show, status, use, checkout, undo, branch, "
                "release and forget")
        if len(rest) > 2 if verb == "branch" else len(rest) != (VERBS[verb] is not None):
            raise UsageError(f"%coppice {verb}: takes {VERBS[verb] or 'nothing more'}")
        getattr(self, verb)(*rest)

    def answer(self, what, about="", timeout_s=TIMEOUT_S):
        status, text = self._ask(what, about, timeout_s)
        if status != "ok":
            raise UsageError(f"%coppice {what}: {text}")
        return json.loads(text)

    def log(self):
        draw(log_text, log_html, self.answer("log"))

    def show(self, name):
        draw(show_text, show_html, self.answer("show", _node(name)))

    def status(self):
        draw(status_text, status_html, self.answer("status"))

    def use(self, name):
        self.answer("use", name)
        print(f"From the next cell on this kernel is recorded in the history {name!r}.")

    def checkout(self, name):
        print(_goes_to(self.answer("checkout", _node(name))))

    def undo(self):
        print(_goes_to(self.answer("undo")))

    def branch(self, node="", name=""):
        if any(" " in word for word in (node, name)):
            raise UsageError("%coppice branch: neither a node nor a branch has spaces in its name")
        print(_branches(self.answer("branch", f"{_node(node)} {name}" if name else _node(node))))

    def release(self):
        n = self.answer("release")["released"]
        print(f"Released: {n} parked state{'' if n == 1 else 's'} of this kernel. Its history stays.")

    def forget(self, name):
        draw(forget_text, forget_html, self.answer("forget", _node(name), FORGET_TIMEOUT_S))


def _node(name):
    return f"In[{name}]" if name.isdigit() else name


def _goes_to(way):
    node = way["node"]
    count = node["execution_count"]
    called = f"In[{count}], " if count is not None else ""
    return f"Once this cell has ended the kernel goes back to {called}node {node['id'][:8]}."


def _things(list_of):
    return [f"  {one['name']} ({one['kind']}): {one['reason']}" for one in list_of]


def _branches(begun):
    report = begun["report"]
    told = [f"Branch {begun['name']} begins at node {begun['node'][:8]}, as kernel {begun['kernel']['id']}. "
            "This kernel goes on as it is."]
    told += [*_things(report["lost"]), *_things(report["approximate"])]
    return "\n".join(told + [f"  {note}" for note in report["notes"]])


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


def _comes_back(node):
    """How much of its state could be gone back to now."""
    return node["fidelity"] if node.get("restorable_by") else ""


def _log_line(node):
    back = _comes_back(node)
    line = f"{node['id'][:8]} {_mark(node):>6} {' '.join(_title(node))}".rstrip()
    return f"{line}  [comes back: {back}]" if back else line


def _stand(branch):
    """Where a branch stands, who goes on there, and how much of its state could be gone back to."""
    return (branch["name"], branch["node"][:8], branch["kernel_id"] or "", _comes_back(branch))


def _branches_of(found):
    rows = [_stand(b) for b in found.get("branches", ())]
    return rows if len(rows) > 1 else []


def log_text(found):
    lines = [f"History {found['name']}"]
    lines += [_log_line(n) for n in found["nodes"]]
    if found["next"]:
        lines.append("... and older ones")
    for name, node, kernel, back in _branches_of(found):
        line = f"Branch {name} is at {node}" + (f", kernel {kernel}" if kernel else "")
        lines.append(f"{line}  [comes back: {back}]" if back else line)
    return "\n".join(lines)


# On each cell: JupyterLab's own rules for tables of outputs align to the right.
LEFT_CELL = "text-align:left;vertical-align:top;white-space:pre"
CODE_CELL = "text-align:left;vertical-align:top;white-space:pre-wrap;font-family:monospace"


def _table(rows, head=(), code=None):
    """`code`: the column that is program text, which may be long."""
    def cell(tag, n, text):
        return f'<{tag} style="{CODE_CELL if n == code else LEFT_CELL}">{html.escape(str(text))}</{tag}>'

    made = f"<tr>{''.join(cell('th', -1, h) for h in head)}</tr>" if head else ""
    made += "".join(f"<tr>{''.join(cell('td', n, text) for n, text in enumerate(row))}</tr>"
                    for row in rows)
    return f'<table style="margin-left:0">{made}</table>'


def _took(node):
    ms = node["duration_ms"]
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def _when(node):
    return (node["started"] or "")[:19].replace("T", " ")


def log_html(found):
    """What a cell is called and did comes first; its id, for those that have no number, last."""
    rows = [
        (_mark(n), "" if n["kind"] == "root" else n["status"], n["summary"],
         "" if n["kind"] == "root" else _took(n), _when(n), ", ".join(n["branches"]),
         _comes_back(n), n["id"][:8])
        for n in found["nodes"]
    ]
    more = "<p>... and older ones</p>" if found["next"] else ""
    head = ("In", "status", "code", "took", "started (UTC)", "branch", "comes back", "node")
    made = f"<p>History <b>{html.escape(found['name'])}</b></p>{_table(rows, head, code=2)}{more}"
    if branches := _branches_of(found):
        made += _table(branches, ("branch", "is at", "kernel", "comes back"))
    return made


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
        facts += [("In", _mark(node)), ("started", f"{_when(node)} UTC"), ("took", _took(node))]
        if peak := node.get("peak_memory_bytes"):
            facts.append(("memory", f"{peak >> 20} MiB at most"))
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


LEFT = ("It is still on this page (delete or clear the cell, and save), in the notebook's file, in the "
        "memory of the kernel, in clones and in backups. If it was a secret, change it.")


def _forgotten(found):
    """Sentences on what became of the node, and of others."""
    later = None if found["rewritten"] is None else len(found["rewritten"]) - 1
    told = [f"Forgotten: the node is {found['node'][:8]} now, and says nothing any more."]
    if later is None:
        told.append("All later nodes have new ids; the old ones lead there.")
    elif later > 0:
        told.append(f"Later nodes with new ids: {later}; the old ones lead there.")
    if same := found["same_code"]:
        names = ", ".join(node[:8] for node in same)
        told.append(f"The same code stands in {names} too, which was left as it is.")
    if shown := found["shown_in"]:
        names = ", ".join(node[:8] for node in shown)
        told.append(f"%coppice log or show may have drawn it in {names}: forget these as well.")
    return [*told, LEFT]


def _renamed(found):
    return [(pair["old"][:8], pair["new"][:8]) for pair in (found["rewritten"] or ())[:SHOWN_RENAMED]]


def forget_text(found):
    return "\n".join([*_forgotten(found), *(f"{old} -> {new}" for old, new in _renamed(found))])


def forget_html(found):
    made = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in _forgotten(found))
    return made + (_table(rows, ("old id", "new id")) if (rows := _renamed(found)) else "")
