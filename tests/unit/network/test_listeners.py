import socket

from sampan.network.listeners import Listener, listeners


def test_the_kernel_says_who_listens_where():
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as every,
    ):
        found = listeners()
        assert Listener("127.0.0.1", "TCP", one.getsockname()[1], ("ip",)) in found
        assert Listener("", "TCP", every.getsockname()[1], ("ip", "ip6")) in found


def test_who_only_asks_by_datagram_does_not_listen():
    """The kernel chose its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.bind(("0.0.0.0", 0))
        port = asker.getsockname()[1]
        assert not any(each.port == port and each.protocol == "UDP" for each in listeners())
