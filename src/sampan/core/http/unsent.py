"""Answers that clients do not read: so many bytes of them in all.

Job: know the connections whose clients read too slowly; when they hold too much, say which goes.
Invariant: who holds most loses first: a client with many connections does not cost others theirs.
Owner: the connections of one server.
"""

from collections.abc import Callable, Hashable
from typing import Protocol


class SlowReader(Hashable, Protocol):
    def unsent_bytes(self) -> int: ...

    def reader_is(self) -> str:
        """Who it is: a user, or an address."""

    def abort(self) -> None: ...


class Unsent:
    def __init__(self, most_bytes: int, cut: Callable[[], None] = lambda: None) -> None:
        """`cut` is called for each that goes."""
        self._most, self._cut = most_bytes, cut
        self._slow: dict[SlowReader, None] = {}  # who has been slow for longest comes first

    def slow(self, reader: SlowReader) -> None:
        """It reads too slowly from now on."""
        self._slow[reader] = None
        held = {each: each.unsent_bytes() for each in self._slow}
        while len(held) > 1 and sum(held.values()) > self._most:
            gone = self._who_goes(held)
            del held[gone], self._slow[gone]
            self._cut()
            gone.abort()

    def caught_up(self, reader: SlowReader) -> None:
        self._slow.pop(reader, None)

    def _who_goes(self, held: dict[SlowReader, int]) -> SlowReader:
        by_reader: dict[str, int] = {}
        for each, size in held.items():
            by_reader[each.reader_is()] = by_reader.get(each.reader_is(), 0) + size
        largest = max(by_reader, key=by_reader.__getitem__)
        return next(each for each in held if each.reader_is() == largest)
