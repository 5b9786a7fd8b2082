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
        body = b'{"kind":"Status","message":"no","reason":"NotFound","code":404}'
        self.send_response(404)
        self.send_header("content-length", str(len(body)))
        self.send_header("warning", '299 - "old \\"thing\\""')
        self.end_headers()
        self.wfile.write(body)

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
