"""Headers of clients that keep to no rule: jupyter_client raises over them, and ipykernel then drops
the request without a word. Nothing would end that cell, and the gateway sends one at a time."""

from jupyter_client import protocol_version, session


def _is_version(version):
    return isinstance(version, str) and version.split(".")[0].isdecimal()


def _dates(read):
    def extract_dates(part):
        try:
            return read(part)
        except Exception:
            return part  # it looks like a date and is none: it stays a text

    return extract_dates


def _versions(change):
    def adapt(message, *args, **kwargs):
        header = message["header"]
        if not _is_version(header.get("version")):
            header["version"] = protocol_version
        return change(message, *args, **kwargs)

    return adapt


def be_lenient():
    session.extract_dates = _dates(session.extract_dates)
    session.adapt = _versions(session.adapt)
