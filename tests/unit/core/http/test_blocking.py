"""A command's own HTTP: what it does to its connections."""

import socket
import ssl
import threading

import pytest

from sampan.core.http.blocking import BlockingHttp, HttpFailure, host_and_port


def test_a_request_does_not_wait_for_an_acknowledgement():
    """Behind a handshake to which the server has nothing to say, it would wait for 40 ms."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

        def serve():
            link, _ = listening.accept()
            with link:
                link.recv(4096)
                link.sendall(answer)
                link.recv(4096)

        server = threading.Thread(target=serve)
        server.start()
        http = BlockingHttp(
            f"http://127.0.0.1:{listening.getsockname()[1]}", ssl.create_default_context
        )
        stream = http.stream("GET", "/", [])
        assert stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        stream.close()
        server.join()


@pytest.mark.parametrize(
    ("authority", "found"),
    [
        ("h", ("h", 443)),
        ("h:6443", ("h", 6443)),
        ("[fd00::1]", ("fd00::1", 443)),
        ("[fd00::1]:6443", ("fd00::1", 6443)),
        ("user:word@h:1", ("h", 1)),
        ("h:", ("h", 443)),
    ],
)
def test_an_authority_is_a_host_and_a_port(authority, found):
    assert host_and_port(authority, 443) == found


@pytest.mark.parametrize("authority", ["h:x", "h:-1", "h:65536", "fd00::1", "h:٣"])
def test_a_port_that_is_none_is_said(authority):
    with pytest.raises(HttpFailure, match="invalid port"):
        host_and_port(authority, 443)
