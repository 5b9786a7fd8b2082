"""Route watch: routes that a link took down with it, or another program removed.

Job: call when a route of the main table came or went.
Invariant: what comes and goes with each pod (routes of one wire) is no news; when the kernel had
    more to say than the socket holds, it is called to be safe.
"""

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Callable

from sampan.network.nftables.attributes import attributes, split

_IPV4_ROUTES, _IPV6_ROUTES = 0x40, 0x400  # groups
_NEW_ROUTE, _DELETE_ROUTE = 24, 25
_MAIN_TABLE = 254
_ROUTE = struct.Struct("=BBBBBBBBI")  # as netlink.py's
_TARGET = 1
_ANSWER_BYTES = 1 << 16
_MOST_ANSWERS = 200  # before others have their turn


def is_news(said: bytes) -> bool:
    """Pure."""
    return any(
        kind in (_NEW_ROUTE, _DELETE_ROUTE) and _is_of_interest(route)
        for kind, route in split(said)
    )


def _is_of_interest(route: bytes) -> bool:
    if len(route) < _ROUTE.size or _ROUTE.unpack_from(route)[4] != _MAIN_TABLE:
        return False
    target = attributes(route[_ROUTE.size :]).get(_TARGET, b"")
    if len(target) not in (4, 16):
        return True  # the default route
    address = ipaddress.ip_address(target)
    return not (address.is_link_local or address.is_multicast)


class RouteWatch:
    def __init__(self, on_change: Callable[[], None]) -> None:
        """Raises OSError. Inside of the loop that is to be told."""
        self._on_change = on_change
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setblocking(False)
        self._socket.bind((0, _IPV4_ROUTES | _IPV6_ROUTES))
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def _read(self) -> None:
        found = False
        for _ in range(_MOST_ANSWERS):
            try:
                found = is_news(self._socket.recv(_ANSWER_BYTES)) or found
            except BlockingIOError:
                break
            except OSError:  # news were lost
                found = True
                break
        if found:
            self._on_change()
