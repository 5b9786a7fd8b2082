"""The end of a server, as its clients see it [A10, A11]."""

import http.client
import ssl
from urllib.parse import urlsplit

import pytest

from sampan.client import kubeconfig
from sampan.core import tls
from tests.support.parts.sampan_process import SampanProcess

pytestmark = pytest.mark.slow


@pytest.fixture
def control_plane(tmp_path):
    process = SampanProcess(tmp_path, "--runtime", "none").up()
    yield process
    if process.program.process.poll() is None:
        process.stop()


def connection_to(process):
    given = kubeconfig.load(str(process.kubeconfig), {}, "").connection()
    context: ssl.SSLContext = tls.client_context(
        ca_data=given.ca, pair_data=(given.certificate, given.key)
    )
    server = urlsplit(given.server)
    return http.client.HTTPSConnection(server.hostname, server.port, context=context, timeout=30)


def test_watches_end_with_a_clean_chunk_end(control_plane):
    """A client that sees the last chunk knows that nothing was cut off, and resumes at once."""
    connection = connection_to(control_plane)
    connection.request("GET", "/api/v1/namespaces?watch=1")
    reply = connection.getresponse()
    assert reply.status == 200
    assert b'"ADDED"' in reply.readline()
    control_plane.program.process.terminate()
    while reply.readline():
        pass  # IncompleteRead would be raised here, were there no last chunk
    assert reply.isclosed()
    connection.close()
    assert control_plane.stop() == 0, control_plane.output.read_text()


def test_a_connection_that_is_idle_does_not_hold_up_the_end(control_plane):
    connection = connection_to(control_plane)
    connection.request("GET", "/readyz")
    assert connection.getresponse().read() == b"ok"
    assert control_plane.program.stop(10) == 0, control_plane.output.read_text()
    connection.close()
