"""client/blocking.py: answers and refusals of a server, without an event loop."""

import gc
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sampan.api.errors import ApiError
from sampan.client.blocking import BlockingClient, NoAnswer
from sampan.client.kubeconfig import Connection


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.startswith("/watch"):
            self._hold()
            return
        body = b'{"kind":"Status","message":"no","reason":"NotFound","code":404}'
        self.send_response(404)
        self.send_header("content-length", str(len(body)))
        self.send_header("warning", '299 - "old \\"thing\\""')
        self.end_headers()
        self.wfile.write(body)

    def _hold(self):
        """The beginning of an answer; the rest comes when the client has gone."""
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self.rfile.read(1)

    def log_message(self, *arguments):
        return


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_refused_stream_leaves_no_connection_open(server):
    client = BlockingClient(Connection(server))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(ApiError, match="no"):
            client.stream("/log")
        gc.collect()


def test_warnings_of_the_server_are_handed_on(server):
    told = []
    client = BlockingClient(Connection(server), on_warning=told.append)
    with pytest.raises(ApiError):
        client.json("GET", "/x")
    client.close()
    assert told == ['old "thing"']


def test_nobody_there_is_said_so():
    with pytest.raises(NoAnswer) as failure:
        BlockingClient(Connection("http://127.0.0.1:1")).json("GET", "/x")
    assert failure.value.refused


@pytest.mark.parametrize("limits", [{"seconds": 0.01}, {}])
def test_a_watch_ends_when_its_time_is_over(server, limits):
    """By its own limit, or by that of the whole client (`--request-timeout`)."""
    client = BlockingClient(Connection(server), timeout_seconds=None if limits else 60.0)
    client._timeout_seconds = None if limits else 0.01
    assert list(client.watch("/watch", {}, **limits)) == []
    client.close()
