"""Watch of nftables transactions: changes of our tables by other programs.

Job: call when another process deleted a table of one name, in whichever family, or changed anything
    in it: chains, rules, sets, elements.
Invariant: what we do ourselves is no news: elements come from sockets of this process, and scripts
    for nft are signed.
Invariant: when the kernel had more to say than its socket holds, whoever is called looks for
    himself.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from enum import Enum

from sampan.network.nftables import own_port
from sampan.network.nftables.attributes import GENERIC, attributes, split_with_port
from sampan.network.nftables.nft import SIGNATURE
from sampan.network.socket_buffers import widen_receiving

_NETLINK_NETFILTER = 12
_NFTABLES_GROUP = 7
_SUBSYSTEM = 10 << 8
_DELETE_CHAIN, _NEW_GENERATION = _SUBSYSTEM | 5, _SUBSYSTEM | 15
_TABLE_NAME, _CHAIN_NAME = 1, 3  # the table's is the first attribute of every message
_BUFFER_BYTES = 4 << 20
_ANSWER_BYTES = 1 << 16
_MOST_ANSWERS = 200  # before others have their turn


class Tampering(Enum):
    CERTAIN = "certain"
    POSSIBLE = "possible"  # news were lost


class Transactions:
    """Which transactions were somebody else's, and about our table. Each ends with the number of
    the generation that it made; its news may come in several pieces."""

    def __init__(self, table: str) -> None:
        self._table = table.encode() + b"\0"
        self._touched = self._signed = False

    def feed(self, news: bytes) -> bool:
        """True where one that ends in these is such a one."""
        found = False
        if not self._touched and self._table not in news:
            return False  # of other tables: on a busy machine nearly all
        for kind, port, content in split_with_port(news):
            if kind == _NEW_GENERATION:
                found = found or (self._touched and not self._signed)
                self.forget()
            elif not own_port.is_own(port):
                self._note(kind, attributes(content[GENERIC.size :]))
        return found

    def forget(self) -> None:
        self._touched = self._signed = False

    def _note(self, kind: int, parsed: dict[int, bytes]) -> None:
        if parsed.get(_TABLE_NAME) != self._table:
            return
        self._touched = True
        if kind == _DELETE_CHAIN and parsed.get(_CHAIN_NAME) == SIGNATURE.encode() + b"\0":
            self._signed = True


class TableWatch:
    def __init__(self, table: str, on_tampering: Callable[[Tampering], None]) -> None:
        """Raises OSError. Inside of the loop that is to be told."""
        self._transactions, self._on_tampering = Transactions(table), on_tampering
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        widen_receiving(self._socket, _BUFFER_BYTES)
        with contextlib.suppress(OSError):
            own_port.ignore_own(self._socket)
        self._socket.setblocking(False)
        self._socket.bind((0, 1 << (_NFTABLES_GROUP - 1)))
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def _read(self) -> None:
        found: Tampering | None = None
        for _ in range(_MOST_ANSWERS):
            try:
                news = self._socket.recv(_ANSWER_BYTES)
            except BlockingIOError:
                break
            except OSError:
                self._transactions.forget()
                found = found or Tampering.POSSIBLE
                break
            if self._transactions.feed(news):
                found = Tampering.CERTAIN
        if found is not None:
            self._on_tampering(found)
