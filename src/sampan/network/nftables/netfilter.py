"""Netfilter's netlink socket: elements of nftables sets, added, removed and read.

Job: the wire format of nf_tables' element messages. The rules themselves are text and go through
    nft (nft.py; learning_rule.py says which does not): they are few, and rarely change; the
    elements are many, and change all the time. One element costs 0.1 ms here, and through nft's
    command line what the whole table costs.
Invariant: a transaction is applied as a whole or not at all.
Invariant: every request is answered or raises OSError; none waits for longer than ten seconds.
"""

import os
import select
import socket
import struct
from collections.abc import Iterator, Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables import own_port
from sampan.network.nftables.attributes import (
    GENERIC,
    attribute,
    attributes,
    children,
    message,
    nested_attribute,
    number_of_error,
    split,
    text,
)
from sampan.network.nftables.elements import DROP, Data, SetShape, Values, Verdict, decode, encode
from sampan.network.socket_buffers import widen_receiving, widen_sending

FAMILIES = {"ip": 2, "ip6": 10, "inet": 1, "bridge": 7}

_NETLINK_NETFILTER = 12
_REQUEST, _ACK, _DUMP, _CREATE, _APPEND = 0x1, 0x4, 0x300, 0x400, 0x800
_ERROR, _DONE = 2, 3
_BATCH_BEGIN, _BATCH_END, _SUBSYSTEM = 0x10, 0x11, 10
_GET_CHAIN, _CHAIN_NAME = 4, 3
_GET_SET, _SET_NAME = 10, 2
_NEW_RULE, _RULE_CHAIN, _RULE_EXPRESSIONS = 6, 2, 4
_NEW_ELEMENT, _GET_ELEMENT, _DELETE_ELEMENT = 12, 13, 14
# linux/netfilter/nf_tables.h
_LIST_TABLE, _LIST_SET, _LIST_ELEMENTS = 1, 2, 3
_ELEMENT_KEY, _ELEMENT_DATA, _ELEMENT_KEY_END = 1, 2, 10
_LIST_ENTRY = 1
_DATA_VALUE, _DATA_VERDICT = 1, 2
_VERDICT_CODE, _VERDICT_CHAIN = 1, 2
_GOTO, _DROP_CODE = -4, 0
# An attribute's length is sixteen bits: longer lists are cut in several.
_LIST_BYTES = 40_000
_BUFFER_BYTES = 8 << 20
_ANSWER_BYTES = 1 << 16
_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ElementChange:
    """`data` None and `gone`: removed. A changed value is a removal and an addition."""

    shape: SetShape
    key: Values
    data: Data = None
    gone: bool = False


class Netfilter:
    """One socket for one table. Blocking: the kernel answers before `send` returns."""

    def __init__(self, family: str, table: str) -> None:
        self._family, self._table = FAMILIES[family], table
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        own_port.bind(self._socket)
        self._socket.settimeout(_ANSWER_SECONDS)
        widen_sending(self._socket, _BUFFER_BYTES)
        widen_receiving(self._socket, _BUFFER_BYTES)
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def apply(self, changes: Sequence[ElementChange]) -> None:
        """All or none. Raises OSError: ENOENT where a set, a chain or an element is not there."""
        self._transact(list(self._messages(changes)))

    def add_rule(self, chain: str, expressions: bytes) -> None:
        """At the chain's end. Raises OSError."""
        body = text(_LIST_TABLE, self._table) + text(_RULE_CHAIN, chain)
        body += nested_attribute(_RULE_EXPRESSIONS, expressions)
        self._transact([(_NEW_RULE, _CREATE | _APPEND, body)])

    def _transact(self, messages: Sequence[tuple[int, int, bytes]]) -> None:
        """Kind, flags and body of each."""
        if not messages:
            return
        begin = message(_BATCH_BEGIN, _REQUEST, self._next(), GENERIC.pack(0, 0, _SUBSYSTEM))
        parts = [begin]
        for position, (kind, flags, body) in enumerate(messages):
            ack = _ACK if position == len(messages) - 1 else 0
            content = GENERIC.pack(self._family, 0, 0) + body
            kind |= _SUBSYSTEM << 8
            parts.append(message(kind, _REQUEST | flags | ack, self._next(), content))
        end = message(_BATCH_END, _REQUEST, self._next(), GENERIC.pack(0, 0, _SUBSYSTEM))
        self._socket.send(b"".join([*parts, end]))
        self._expect_success()

    def elements(self, shape: SetShape) -> Iterator[tuple[Values, Data]]:
        """What the set holds now."""
        body = GENERIC.pack(self._family, 0, 0) + self._place(shape.name)
        kind = _SUBSYSTEM << 8 | _GET_ELEMENT
        self._socket.send(message(kind, _REQUEST | _DUMP, self._next(), body))
        for content in self._answers():
            found = attributes(content[GENERIC.size :])
            for _, entry in children(found.get(_LIST_ELEMENTS, b"")):
                yield _element(shape, attributes(entry))

    def sets(self) -> list[str]:
        """The names of the table's sets and maps."""
        return self._names(_GET_SET, _SET_NAME)

    def chains(self) -> list[str]:
        return self._names(_GET_CHAIN, _CHAIN_NAME)

    def _names(self, request: int, attribute_number: int) -> list[str]:
        body = GENERIC.pack(self._family, 0, 0) + text(_LIST_TABLE, self._table)
        self._socket.send(message(_SUBSYSTEM << 8 | request, _REQUEST | _DUMP, self._next(), body))
        found = []
        for content in self._answers():
            entry = attributes(content[GENERIC.size :])
            if entry[_LIST_TABLE].rstrip(b"\0").decode() == self._table:
                found.append(entry[attribute_number].rstrip(b"\0").decode())
        return found

    def _place(self, name: str) -> bytes:
        return text(_LIST_TABLE, self._table) + text(_LIST_SET, name)

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) & 0x7FFFFFFF
        return self._sequence

    def _messages(self, changes: Sequence[ElementChange]) -> Iterator[tuple[int, int, bytes]]:
        """Removals first, so that what is moved or changed can come in again."""
        for gone in (True, False):
            kind, flags = (_DELETE_ELEMENT, 0) if gone else (_NEW_ELEMENT, _CREATE)
            by_set: dict[str, list[bytes]] = {}
            for change in changes:
                if change.gone is gone:
                    entry = nested_attribute(_LIST_ENTRY, b"".join(_entry(change)))
                    by_set.setdefault(change.shape.name, []).append(entry)
            for name, entries in by_set.items():
                for piece in _pieces(entries):
                    yield kind, flags, self._place(name) + nested_attribute(_LIST_ELEMENTS, piece)

    def _expect_success(self) -> None:
        failure: OSError | None = None
        while True:
            answer = self._socket.recv(_ANSWER_BYTES)
            for kind, content in split(answer):
                if kind == _ERROR:
                    number = number_of_error(content)
                    if number and failure is None:
                        failure = OSError(number, os.strerror(number))
            if failure is None:
                return
            # A refused transaction may say several things: all are taken off the socket.
            if not self._more():
                raise failure

    def _more(self) -> bool:
        readable, _, _ = select.select([self._socket], [], [], 0)
        return bool(readable)

    def _answers(self) -> Iterator[bytes]:
        while True:
            for kind, content in split(self._socket.recv(_ANSWER_BYTES)):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = number_of_error(content)
                    if number:
                        raise OSError(number, os.strerror(number))
                    return
                yield content


def _entry(change: ElementChange) -> Iterator[bytes]:
    shape = change.shape
    if shape.intervals:
        half = len(shape.key)
        first, last = change.key[:half], change.key[half:]
        yield nested_attribute(_ELEMENT_KEY, _value(encode(shape.key, first)))
        yield nested_attribute(_ELEMENT_KEY_END, _value(encode(shape.key, last)))
    else:
        yield nested_attribute(_ELEMENT_KEY, _value(encode(shape.key, change.key)))
    if change.gone or change.data is None:
        return
    if isinstance(change.data, Verdict):
        code = _GOTO if change.data.chain else _DROP_CODE
        verdict = attribute(_VERDICT_CODE, struct.pack(">i", code))
        if change.data.chain:
            verdict += text(_VERDICT_CHAIN, change.data.chain)
        yield nested_attribute(_ELEMENT_DATA, nested_attribute(_DATA_VERDICT, verdict))
    else:
        yield nested_attribute(_ELEMENT_DATA, _value(encode(shape.data, change.data)))


def _element(shape: SetShape, entry: dict[int, bytes]) -> tuple[Values, Data]:
    key = decode(shape.key, attributes(entry[_ELEMENT_KEY])[_DATA_VALUE])
    if shape.intervals:
        last = attributes(entry[_ELEMENT_KEY_END])[_DATA_VALUE]
        return (*key, *decode(shape.key, last)), None
    if _ELEMENT_DATA not in entry:
        return key, None
    data = attributes(entry[_ELEMENT_DATA])
    if _DATA_VERDICT not in data:
        return key, decode(shape.data, data[_DATA_VALUE])
    chain = attributes(data[_DATA_VERDICT]).get(_VERDICT_CHAIN, b"")
    return key, Verdict(chain.rstrip(b"\0").decode()) if chain else DROP


def _pieces(entries: Sequence[bytes]) -> Iterator[bytes]:
    piece: list[bytes] = []
    size = 0
    for entry in entries:
        if size + len(entry) > _LIST_BYTES:
            yield b"".join(piece)
            piece, size = [], 0
        piece.append(entry)
        size += len(entry)
    yield b"".join(piece)


def _value(data: bytes) -> bytes:
    return attribute(_DATA_VALUE, data)
