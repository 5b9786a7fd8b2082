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
        # Who has been slow for longest comes first; how much it held when that was looked at: since
        # then it got no more, as nobody writes to who is slow.
        self._held: dict[SlowReader, int] = {}
        self._sum = 0

    def slow(self, reader: SlowReader) -> None:
        """It reads too slowly from now on."""
        self._note(reader)
        if self._sum <= self._most:
            return
        for each in list(self._held):
            self._note(each)
        while len(self._held) > 1 and self._sum > self._most:
            gone = self._who_goes()
            self.caught_up(gone)
            self._cut()
            gone.abort()

    def caught_up(self, reader: SlowReader) -> None:
        self._sum -= self._held.pop(reader, 0)

    def _note(self, reader: SlowReader) -> None:
        size = reader.unsent_bytes()
        self._sum += size - self._held.get(reader, 0)
        self._held[reader] = size

    def _who_goes(self) -> SlowReader:
        by_reader: dict[str, int] = {}
        for each, size in self._held.items():
            by_reader[each.reader_is()] = by_reader.get(each.reader_is(), 0) + size
        largest = max(by_reader, key=by_reader.__getitem__)
        return next(each for each in self._held if each.reader_is() == largest)
