"""Max in-flight limits, where API priority and fairness is off.

Job: count reads and writes apart; refuse with 429 beyond the limit.
Invariant: what lasts (watches, logs, exec, proxying) is not counted: it would fill the room.
Invariant: administrators are counted and never refused: somebody must be able to repair things.
Owner: HttpEdge.
"""

from typing import Protocol

from sampan.api.errors import TooManyRequests
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.http.request import RequestInfo
from sampan.core.fast_dataclass import dataclass

READING = frozenset({"get", "list", "watch"})
LASTING = frozenset({"attach", "exec", "log", "portforward", "proxy"})
RETRY_SECONDS = 1
Headers = tuple[tuple[str, str], ...]


class SeatTaken(Protocol):
    """Held while a request is served."""

    seats: int

    @property
    def headers(self) -> Headers:
        """What the reply says of it."""

    def leave(self, now: float) -> None:
        """Once; the second time nothing happens."""


class RequestLimit(Protocol):
    """Who may be served now: fulfilled by InFlight and by FlowControl."""

    def take(
        self, user: User, info: RequestInfo | None, path: str, verb: str, now: float
    ) -> SeatTaken | None:
        """A seat at once, where there is one; else whoever asks must `wait`."""

    async def wait(self, user: User, info: RequestInfo | None, path: str, verb: str) -> SeatTaken:
        """Raises TooManyRequests."""


@dataclass(slots=True)
class _Place:
    room: "InFlight"
    kind: int  # of the counter; -1: none
    seats: int = 1
    headers: Headers = ()

    def leave(self, now: float) -> None:
        kind, self.kind = self.kind, -1
        if kind >= 0:
            self.room.leave(kind)


class InFlight:
    def __init__(self, reads: int, writes: int) -> None:
        self._limits = (reads, writes)
        self.now = [0, 0]  # reads and writes under way

    def take(
        self, user: User, info: RequestInfo | None, path: str, verb: str, now: float
    ) -> SeatTaken | None:
        lasts = verb == "watch" or (info is not None and info.subresource in LASTING)
        if lasts or info is None or info.resource is None:
            return _Place(self, -1)
        kind = 0 if verb in READING else 1
        if self.now[kind] >= self._limits[kind] and MASTERS not in user.groups:
            return None
        self.now[kind] += 1
        return _Place(self, kind)

    async def wait(self, user: User, info: RequestInfo | None, path: str, verb: str) -> SeatTaken:
        """Nobody waits here. Raises TooManyRequests."""
        raise TooManyRequests(
            "Too many requests, please try again later.", retry_after_seconds=RETRY_SECONDS
        )

    def leave(self, kind: int) -> None:
        self.now[kind] -= 1
        assert self.now[kind] >= 0, self.now
