"""testing/kit/messages.py: whole messages, in order, with what they bring."""

import os
import socket

import pytest

from sampan.testing.kit import messages


@pytest.fixture
def ends():
    ours, theirs = messages.pair()
    with ours, theirs:
        yield ours, theirs


def test_messages_come_whole_and_in_order(ends):
    ours, theirs = ends
    sent = [{"id": number, "text": "x" * size} for number, size in enumerate((0, 1, 60_000, 7))]
    for message in sent:
        messages.send(ours, message)
    assert [messages.receive(theirs) for _ in sent] == [(message, None) for message in sent]


def test_a_socket_comes_with_its_message_and_not_with_the_next(ends):
    ours, theirs = ends
    one, other = socket.socketpair()
    with one, other:
        messages.send(ours, {"id": 1}, enclosed=other)
        messages.send(ours, {"id": 2})
        message, enclosed = messages.receive(theirs)
        assert message == {"id": 1}
        with enclosed:
            enclosed.send(b"through it")
            assert one.recv(100) == b"through it"
        assert messages.receive(theirs) == ({"id": 2}, None)


@pytest.mark.parametrize("cut", [1, 5])
def test_a_message_in_pieces_is_waited_for_by_those_who_do_not_block_too(ends, cut):
    ours, theirs = ends
    theirs.setblocking(False)
    whole = b"\0\0\0\x08" + b'{"id":3}'
    ours.send(whole[:cut])
    if os.fork() == 0:
        ours.send(whole[cut:])
        os._exit(0)
    assert messages.receive(theirs) == ({"id": 3}, None)
    os.wait()


@pytest.mark.parametrize("begun", [b"", b"\0\0", b"\0\0\0\x08", b"\0\0\0\x08{"])
def test_an_end_that_is_closed_is_an_end(ends, begun):
    ours, theirs = ends
    ours.send(begun)
    ours.close()
    assert messages.receive(theirs) is None


def test_what_does_not_fit_is_sent_when_it_does(ends):
    ours, theirs = ends
    ours.setblocking(False)
    message = {"text": "x" * 65_000}
    if os.fork() == 0:
        for _ in range(20):
            messages.send(ours, message)
        os._exit(0)
    assert [messages.receive(theirs) for _ in range(20)] == [(message, None)] * 20
    os.wait()
