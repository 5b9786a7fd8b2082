"""Ports of simulated pods: what a client of one is told."""

import asyncio

import pytest

from sampan.kubelet.simulated.script import PREFIX, Script
from sampan.kubelet.simulated.scripted_ports import connect, http_answer, is_whole

SCRIPT = Script({f"{PREFIX}http.80": "hello", f"{PREFIX}tcp.25": "220 ready\n"})
POST = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("request_so_far", "whole"),
    [
        (b"GET / HTTP/1.1\r\n", False),
        (b"GET / HTTP/1.1\r\n\r\n", True),
        (POST + b"te", False),
        (POST + b"tea", True),
        (CHUNKED + b"3\r\ntea\r\n", False),
        (CHUNKED + b"3\r\ntea\r\n0\r\n\r\n", True),
        (b"x" * 70_000, True),
    ],
)
def test_a_request_is_answered_when_all_of_it_has_come(request_so_far, whole):
    assert is_whole(request_so_far) is whole


def test_a_script_may_name_the_status():
    assert http_answer("hello").startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n")
    assert http_answer("503 not now").startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert http_answer("503 not now").endswith(b"\r\n\r\nnot now")
    assert http_answer("12 monkeys").endswith(b"\r\n\r\n12 monkeys")


async def told(port, *said):
    loop, found = asyncio.get_running_loop(), b""
    with await connect(SCRIPT, port) as connection:
        for part in said:
            await loop.sock_sendall(connection, part)
        while part := await loop.sock_recv(connection, 4096):
            found += part
    return found


def test_a_connection_is_answered_once_and_ends():
    assert asyncio.run(told(80, POST, b"tea")).endswith(b"\r\n\r\nhello")
    assert asyncio.run(told(25)) == b"220 ready\n"


def test_what_the_script_does_not_name_refuses():
    with pytest.raises(ConnectionRefusedError, match="Connection refused"):
        asyncio.run(told(81))
