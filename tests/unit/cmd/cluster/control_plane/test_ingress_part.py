import socket

import pytest

from sampan.cmd.cluster.control_plane.ingress_part import IngressPart, address_of
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import IngressChoices, UpSettings
from sampan.core.http.server import bound_socket


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("127.0.0.1", {"hostname": "localhost"}),
        ("::1", {"hostname": "localhost"}),
        ("0.0.0.0", {"ip": "10.0.0.7"}),
        ("::", {"ip": "10.0.0.7"}),
        ("192.0.2.1", {"ip": "192.0.2.1"}),
    ],
)
def test_a_status_says_where_clients_find_us(bound, told):
    assert address_of(bound, "10.0.0.7") == told


def test_a_port_that_is_taken_is_one_sentence_and_leaves_nothing_bound(tmp_path):
    bound = []

    def bind(address, port):
        bound.append(bound_socket(address, port))
        return bound[-1]

    with bound_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        settings = UpSettings(ingress=IngressChoices(0, port))
        with pytest.raises(CannotStart, match=rf"--ingress: port {port} of 127.0.0.1: .*in use"):
            IngressPart(settings, DataDir(tmp_path), bind)
    assert [each.fileno() for each in bound] == [-1]
    assert isinstance(bound[0], socket.socket)
