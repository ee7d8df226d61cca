"""Packets of the `ctl` socket (docs/PROTOCOL-ctl.md): the message table and its codec."""

import json

VERSION = 1
PACKET_MAX = 65536
PIECE_BYTES = 46080  # of data: in base64 and with its fields it fits into one packet

UP, DOWN, BOTH = "up", "down", "both"

# type -> (direction, fields, number of descriptors). A `?` means that the field may be absent.
TABLE = {
    "hello": (
        UP,
        "version:int pid:int image:text? python:text? ipykernel:text? lines:list? "
        "hands_over:bool? parks:bool? files:bool? branches:bool?",
        0,
    ),
    "welcome": (DOWN, "version:int reports:bool? parks_max:int? files:bool? lays_kept:list?", 0),
    "start": (DOWN, "line:int kernel:text key:text cwd:text env:texts endpoints:list fresh:bool", 5),
    "started": (UP, "line:int pid:int", 0),
    "start_failed": (UP, "line:int reason:text", 0),
    "signal": (DOWN, "line:int signal:int", 0),
    "signalled": (UP, "line:int ok:bool reason:text?", 0),
    "kill": (DOWN, "line:int", 0),
    "exited": (UP, "line:int code:int? signal:int? oom:bool left:int", 0),
    "ack": (DOWN, "line:int channel:text msg_id:text", 0),
    "replay": (DOWN, "line:int after:list", 0),
    "kept": (UP, "line:int channel:text id:int offset:int size:int data:text", 0),
    "kept_end": (UP, "line:int dropped:int", 0),
    "hand_over": (DOWN, "line:int kernel:text cwd:text env:texts", 0),
    "handed_over": (UP, "line:int", 0),
    "report": (UP, "line:int msg_id:text data:text", 0),
    "ask": (UP, "line:int id:int what:text about:text", 0),
    "answer": (DOWN, "line:int id:int status:text offset:int size:int data:text", 0),
    "parked": (UP, "line:int msg_id:text park:int pid:int data:text kernel:text?", 0),
    "not_parked": (UP, "line:int msg_id:text reason:text", 0),
    "unparked": (UP, "park:int reason:text", 0),
    "release": (DOWN, "park:int", 0),
    "revive": (
        DOWN,
        "line:int park:int kernel:text key:text cwd:text env:texts endpoints:list",
        5,
    ),
    "revived": (UP, "line:int data:text", 0),
    "drop_folder": (DOWN, "folder:text", 0),
    "files": (UP, "line:int msg_id:text offset:int size:int data:text", 0),
    "want": (DOWN, "line:int msg_id:text names:list last:bool", 0),
    "content": (UP, "name:text offset:int size:int data:text", 0),
    "scan": (DOWN, "line:int id:text full:bool?", 0),
    "lay": (DOWN, "id:text folder:text offset:int size:int data:text", 0),
    "laid": (UP, "id:text ready:bool reason:text? names:list? last:bool", 0),
    "lay_content": (DOWN, "id:text name:text offset:int size:int data:text", 0),
    "lay_end": (DOWN, "id:text keep:bool", 0),
    "error": (BOTH, "about:text reason:text", 0),
}


class Malformed(Exception):
    """A packet that is not one of ours; `about` is its type as far as it could be read."""

    def __init__(self, about, reason):
        super().__init__(reason)
        self.about = about
        self.reason = reason


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def _is_text(value):
    return isinstance(value, str)


KINDS = {
    "int": _is_int,
    "text": _is_text,
    "bool": lambda value: isinstance(value, bool),
    "texts": lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    "list": lambda value: isinstance(value, list) and all(map(_is_text, value)),
}


def fields_of(name):
    """Yields (field, kind, optional) of one row."""
    for spec in TABLE[name][1].split():
        field, kind = spec.split(":")
        yield field, kind.rstrip("?"), kind.endswith("?")


def check(message, came):
    """Raises Malformed unless the message fits its row; `came` is the direction it travelled in."""
    name = message.get("type")
    if not isinstance(name, str) or name not in TABLE:
        raise Malformed(str(name)[:64], "unknown type")
    if TABLE[name][0] not in (came, BOTH):
        raise Malformed(name, "wrong direction")
    for field, kind, optional in fields_of(name):
        value = message.get(field)
        if value is None:
            if not optional:
                raise Malformed(name, f"field {field} is missing")
        elif not KINDS[kind](value):
            raise Malformed(name, f"field {field} is not of kind {kind}")


def decode(packet, came):
    """Bytes in, checked message out."""
    try:
        message = json.loads(packet)
    except (ValueError, RecursionError) as e:
        raise Malformed("", f"not JSON: {e}"[:200]) from e
    if not isinstance(message, dict):
        raise Malformed("", "not an object")
    check(message, came)
    return message


def encode(name, /, **fields):
    """Builds the packet of one message, or raises Malformed."""
    message = {"type": name, **fields}
    check(message, TABLE[name][0] if TABLE[name][0] != BOTH else UP)
    packet = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    if len(packet) > PACKET_MAX:
        raise Malformed(name, "too long")
    return packet
