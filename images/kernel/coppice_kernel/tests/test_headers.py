"""Headers that jupyter_client itself does not take."""

import pytest
from jupyter_client import session

from coppice_kernel import headers


@pytest.fixture
def lenient(monkeypatch):
    for name in ("extract_dates", "adapt"):
        monkeypatch.setattr(session, name, getattr(session, name))  # put back afterwards
    headers.be_lenient()


def read(change, parent=None):
    s = session.Session(key=b"key")
    message = s.msg("execute_request", {"code": "1", "silent": False}, parent=None)
    change(message["header"])
    message["parent_header"] = parent or {}
    _, frames = s.feed_identities(s.serialize(message))
    return session.Session(key=b"key").deserialize(frames)


@pytest.mark.parametrize("version", [None, 5, "", "five"])
def test_a_version_that_is_none_is_ours(lenient, version):
    def change(header):
        header["version"] = version
        if version is None:
            del header["version"]

    message = read(change)
    assert message["header"]["version"] == session.protocol_version
    assert message["content"]["code"] == "1"


@pytest.mark.parametrize("date", ["9999-99-99T99:99:99Z", "0000-01-01T00:00:00Z"])
def test_a_date_that_is_none_is_text(lenient, date):
    message = read(lambda header: header.update(date=date, note=date), {"msg_id": "a", "date": date})
    assert message["header"]["date"] == date and message["parent_header"]["date"] == date
    assert message["msg_type"] == "execute_request"


def test_what_is_right_is_read_as_before(lenient):
    message = read(lambda header: header.update(date="2026-12-01T04:00:00Z"))
    assert message["header"]["date"].year == 2026 and message["header"]["version"][0] == "5"


def test_a_wrong_signature_is_not_forgiven(lenient):
    s = session.Session(key=b"key")
    _, frames = s.feed_identities(s.serialize(s.msg("execute_request", {})))
    with pytest.raises(ValueError, match="Signature"):
        session.Session(key=b"other").deserialize(frames)
