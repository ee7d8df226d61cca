"""input(): the wire half of field case 34, and whom the kernel's question goes to."""

from gateway import within
from wire import NoMessage

import pytest


def test_input_round(any_client):
    msg_id = any_client.execute('n = input("who? "); print("hello", n)', allow_stdin=True)
    question = any_client.until_type("input_request", msg_id)
    assert question.channel == "stdin"
    assert question.content == {"prompt": "who? ", "password": False}
    any_client.answer(question, "Zo\u00eb \U0001f9ea")
    assert any_client.collect(msg_id).stdout == "hello Zo\u00eb \U0001f9ea\n"


def test_getpass(any_client):
    msg_id = any_client.execute("import getpass; print(len(getpass.getpass('key: ')))",
                                allow_stdin=True)
    question = any_client.until_type("input_request", msg_id)
    assert question.content["password"] is True
    any_client.answer(question, "abc")
    assert any_client.collect(msg_id).stdout == "3\n"


def test_case_34_nobody_to_ask(any_client):
    for code in ('n = input("who? ")', "import getpass; getpass.getpass()"):
        run = any_client.run(code, timeout=within(5))
        assert run.status == "error" and run.reply.content["ename"] == "StdinNotImplementedError"
    assert any_client.run('print("on")').stdout == "on\n"
    assert not [m for m in any_client.messages if m.type == "input_request"]


def test_only_the_asker_is_asked(docker_gateway, kernel, client):
    with docker_gateway.open(kernel, "v1") as other:
        other.info()
        msg_id = client.execute("print(input('q'))", allow_stdin=True)
        question = client.until_type("input_request", msg_id)
        other.until_type("execute_input", msg_id)
        # The other's own control request comes back after whatever was sent to it before.
        mark = other.send("control", "kernel_info_request")
        other.until(lambda m: m.parent_id == mark and m.type == "kernel_info_reply")
        assert not [m for m in other.messages if m.type == "input_request"]
        client.answer(question, "mine")
        assert client.collect(msg_id).stdout == "mine\n"


def test_each_asker_in_turn(docker_gateway, kernel, client):
    with docker_gateway.open(kernel, "v1") as other:
        other.info()
        a = client.execute("print(input('a'))", allow_stdin=True)
        b = other.execute("print(input('b'))", allow_stdin=True)
        client.answer(client.until_type("input_request", a), "1")
        assert client.collect(a).stdout == "1\n"
        other.answer(other.until_type("input_request", b), "2")
        assert other.collect(b).stdout == "2\n"


def test_answer_without_parent(client):
    """Clients that leave the parent out are served all the same."""
    msg_id = client.execute("print(input('q'))", allow_stdin=True)
    client.until_type("input_request", msg_id)
    client.send("stdin", "input_reply", {"value": "bare", "status": "ok"})
    assert client.collect(msg_id).stdout == "bare\n"


def test_interrupt_while_asking(docker_gateway, kernel, any_client):
    msg_id = any_client.execute("input('q')", allow_stdin=True)
    any_client.until_type("input_request", msg_id)
    docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
    assert any_client.collect(msg_id, within(10)).status == "error"
    assert any_client.run("print('on')").stdout == "on\n"


def test_asker_gone(docker_gateway, kernel, client):
    """The question of a client that left does not reach a stranger; the kernel can be had back."""
    with docker_gateway.open(kernel, "v1", session="leaver") as asker:
        asker.info()
        msg_id = asker.execute("input('q')", allow_stdin=True)
        asker.until_type("input_request", msg_id)
        asker.cut()
    docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
    docker_gateway.wait_state(kernel, "idle")
    assert client.run("print('on')", timeout=within(15)).stdout == "on\n"
    assert not [m for m in client.messages if m.type == "input_request"]


def test_a_second_copy_is_no_second_answer(any_client):
    """A gateway that takes a kernel up sends it again: it cannot know whether the first arrived."""
    msg_id = any_client.execute("print(input('a'), input('b'))", allow_stdin=True)
    first = any_client.until_type("input_request", msg_id)
    frame = any_client.encode("stdin", any_client.header("input_reply"), first.header, {},
                              {"value": "one", "status": "ok"})
    any_client.send_frame(frame)
    second = any_client.until_type("input_request", msg_id, skip=len(any_client.messages))
    any_client.send_frame(frame)
    any_client.answer(second, "two")
    assert any_client.collect(msg_id).stdout == "one two\n"


def test_stray_answers_do_no_harm(any_client):
    for _ in range(3):
        any_client.send("stdin", "input_reply", {"value": "stray", "status": "ok"})
    assert any_client.run("print('fine')").stdout == "fine\n"
    msg_id = any_client.execute("print(input('q'))", allow_stdin=True)
    try:
        question = any_client.until_type("input_request", msg_id, within(5))
    except NoMessage:
        pytest.fail("a stray answer was taken for a later question")
    any_client.answer(question, "meant")
    assert any_client.collect(msg_id).stdout == "meant\n"
