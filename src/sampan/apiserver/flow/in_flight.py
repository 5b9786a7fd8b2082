"""How many requests are under way, and when it is too many.

Job: count reads and writes apart; refuse with 429 beyond the limit.
Invariant: what lasts (watches, logs, exec, proxying) is not counted: it would fill the room.
Invariant: administrators are counted and never refused: somebody must be able to repair things.
Owner: HttpEdge.
"""

from sampan.api.errors import TooManyRequests
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.http.request import RequestInfo

READING = frozenset({"get", "list", "watch"})
LASTING = frozenset({"attach", "exec", "log", "portforward", "proxy"})
RETRY_SECONDS = 1


class InFlight:
    def __init__(self, reads: int, writes: int) -> None:
        self._limits = (reads, writes)
        self._now = [0, 0]

    def enter(self, info: RequestInfo, user: User) -> int:
        """Which counter is to be left; -1: none. Raises TooManyRequests."""
        if info.verb == "watch" or info.subresource in LASTING:
            return -1
        kind = 0 if info.verb in READING else 1
        if self._now[kind] >= self._limits[kind] and MASTERS not in user.groups:
            raise TooManyRequests(
                "Too many requests, please try again later.", retry_after_seconds=RETRY_SECONDS
            )
        self._now[kind] += 1
        return kind

    def leave(self, kind: int) -> None:
        if kind >= 0:
            self._now[kind] -= 1
            assert self._now[kind] >= 0, self._now
