import socket
import struct

import pytest

from sampan.network.nftables.attributes import attribute, message
from sampan.network.overlay.route_watch import is_news

NEW_ROUTE, DELETE_ROUTE, NEW_LINK = 24, 25, 16
MAIN, LOCAL = 254, 255


def route(kind, target, table=MAIN):
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    body = struct.pack("=BBBBBBBBI", family, 24, 0, 0, table, 4, 0, 1, 0)
    if target:
        body += attribute(1, socket.inet_pton(family, target))
    return message(kind, 0, 1, body)


@pytest.mark.parametrize(
    ("said", "news"),
    [
        (route(NEW_ROUTE, "198.51.100.0"), True),
        (route(DELETE_ROUTE, "10.244.1.0"), True),
        (route(DELETE_ROUTE, "fd00::"), True),
        (route(DELETE_ROUTE, ""), True),
        (route(NEW_ROUTE, "fe80::"), False),
        (route(NEW_ROUTE, "ff00::"), False),
        (route(NEW_ROUTE, "10.244.1.0", LOCAL), False),
        (message(NEW_LINK, 0, 1, b"\0" * 16), False),
        (route(NEW_ROUTE, "fe80::") + route(NEW_ROUTE, "10.0.0.0"), True),
        (b"", False),
    ],
)
def test_routes_between_machines_are_news_and_those_of_one_wire_are_not(said, news):
    assert is_news(said) is news
