"""A command's own HTTP: what it does to its connections."""

import select
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


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Server:
    """On each connection it takes so many requests, answers all but the last, and ends then what
    it does not hold."""

    def __init__(self, *connections):
        self.asked, self.holds = [], threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, args=connections)

    def __enter__(self):
        self._thread.start()
        port = self._listening.getsockname()[1]
        return BlockingHttp(
            f"http://127.0.0.1:{port}", ssl.create_default_context, timeout_seconds=1
        )

    def __exit__(self, *_how):
        self.holds.set()
        self._thread.join()
        self._listening.close()

    def _serve(self, *connections):
        for count, end in connections:
            link, _ = self._listening.accept()
            with link:
                for number in range(1, count + 1):
                    self.asked.append(link.recv(4096).split()[0].decode())
                    if number < count or end == "answers":
                        link.sendall(OK)
                if end == "is silent":
                    self.holds.wait(60)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "GET"])
def test_what_was_not_answered_in_time_is_not_sent_again(method):
    """The server may be at it: a write that was done would be refused the second time."""
    server = Server((2, "is silent"))
    with server as http:
        assert http.request("GET", "/", []).status == 200
        with pytest.raises(HttpFailure, match="did not answer in time"):
            http.request(method, "/", [])
        assert server.asked == ["GET", method]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_a_write_whose_connection_ends_is_not_sent_again(method):
    server = Server((2, "ends"))
    with server as http:
        assert http.request("GET", "/", []).status == 200
        with pytest.raises(HttpFailure, match=r"EOF|reset"):
            http.request(method, "/", [])
        assert server.asked == ["GET", method]


def test_a_read_whose_connection_ends_is_sent_again():
    server = Server((2, "ends"), (1, "answers"))
    with server as http:
        assert http.request("GET", "/", []).status == 200
        assert http.request("GET", "/", []).status == 200
        http.close()
    assert server.asked == ["GET"] * 3


def test_a_write_does_not_begin_on_a_connection_that_has_ended():
    server = Server((1, "answers"), (1, "answers"))
    with server as http:
        assert http.request("GET", "/", []).status == 200
        ended = select.poll()
        ended.register(http._kept.socket, select.POLLIN)
        assert ended.poll(60_000)
        assert http.request("PUT", "/", []).status == 200
        http.close()
    assert server.asked == ["GET", "PUT"]


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
