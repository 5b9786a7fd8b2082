"""Somebody else's `nft flush ruleset`: the kernel says at once whose tables are gone.

Job: call when a table of one name was deleted, in whichever family.
Invariant: when the kernel had more to say than its socket holds, that counts as a deletion: whoever
    is called looks for himself.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

from sampan.network.nftables.attributes import GENERIC, attributes, split

_NETLINK_NETFILTER = 12
_NFTABLES_GROUP = 7
_SUBSYSTEM, _DELETE_TABLE, _TABLE_NAME = 10, 2, 1
_SO_RCVBUFFORCE = 33  # not bound by the machine's limit
_BUFFER_BYTES = 4 << 20
_ANSWER_BYTES = 1 << 16
_MOST_ANSWERS = 200  # before others have their turn


def deleted_tables(news: bytes) -> set[str]:
    """Those that one message from the kernel is about. Pure."""
    return {
        attributes(content[GENERIC.size :]).get(_TABLE_NAME, b"").rstrip(b"\0").decode()
        for kind, content in split(news)
        if kind == _SUBSYSTEM << 8 | _DELETE_TABLE
    }


class TableWatch:
    def __init__(self, table: str, on_deleted: Callable[[], None]) -> None:
        """Raises OSError. Inside of the loop that is to be told."""
        self._table, self._on_deleted = table, on_deleted
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.setblocking(False)
        self._socket.bind((0, 1 << (_NFTABLES_GROUP - 1)))
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def _read(self) -> None:
        deleted = False
        for _ in range(_MOST_ANSWERS):
            try:
                news = self._socket.recv(_ANSWER_BYTES)
            except BlockingIOError:
                break
            except OSError:
                deleted = True  # it lost some
                break
            deleted = deleted or self._table in deleted_tables(news)
        if deleted:
            self._on_deleted()
