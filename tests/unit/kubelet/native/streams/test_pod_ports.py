import socket

import pytest

from sampan.kubelet.native.streams.pod_ports import socket_inside


def test_a_pod_whose_namespace_is_gone_is_an_os_error():
    """Whoever forwards a port is told, as of any connection that cannot be made."""
    with pytest.raises(FileNotFoundError):
        socket_inside("/nowhere/netns", socket.AF_INET)
