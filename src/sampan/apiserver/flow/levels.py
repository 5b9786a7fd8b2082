"""Seats and queues of one priority level.

Job: give a seat, or a place in a queue, or a refusal; fair between flows.
Invariant: never more seats in use than the level has, but by what others lend and by one request
    that is larger than all of them.
Invariant: at most one wide request (more than one seat) begins per turn of the loop; whoever comes
    meanwhile lines up, and the least served goes on. Such a request does not wait for anything: it
    would keep its seat only while nobody else can ask for one, and seats would not tell that the
    server is busy.
Invariant: among queues with waiting requests the one that has been served least goes first; a
    queue that was idle does not save up for it.
Owner: FlowControl; all calls come from the server's own loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from sampan.apiserver.http.request import RequestInfo
from sampan.core.fast_dataclass import dataclass

ESTIMATE_SECONDS = 0.003  # what a request is charged until it is known what it took


@dataclass(frozen=True, slots=True)
class LevelSettings:
    name: str
    uid: str
    exempt: bool
    seats: int
    lendable: int
    borrowable: int  # at most; what is there to borrow is another question
    queues: int  # 0: refuse instead of queueing
    hand_size: int
    queue_length: int


class Queue:
    __slots__ = ("last", "served", "waiting")

    def __init__(self) -> None:
        self.served = 0.0  # seat-seconds
        self.last = 0  # when it was called from, as the level counts: who was not is before others
        self.waiting: deque[tuple[asyncio.Future[None], int]] = deque()


Hand = tuple[Queue, ...]  # the queues that a flow may wait in


class Running:
    """Of one flow schema at its level, now: who is served, on how many seats, and who waits."""

    __slots__ = ("seats", "served", "waiting")

    def __init__(self) -> None:
        self.seats = self.waiting = 0
        self.served: set[Seat] = set()


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose request it is, of which flow, and since when: for who looks at what is going on."""

    distinguisher: str
    user: str
    verb: str
    path: str
    info: RequestInfo | None
    arrived: float  # monotonic


@dataclass(slots=True, eq=False)
class Seat:
    """Held while a request is served."""

    level: "Level"
    queue: Queue | None
    seats: int  # 0: of a level that is exempt
    began: float
    headers: tuple[tuple[str, str], ...] = ()  # of the reply: by whom it was classified
    running: Running | None = None  # where it is counted, until it is left
    asked: Asked | None = None

    def leave(self, now: float) -> None:
        """Once; the second time nothing happens."""
        running = self.running
        if running is not None:
            running.served.discard(self)
            running.seats -= self.seats or 1  # who is exempt is on one, too
            self.running = None
        if self.seats:
            self.level.left(self, now)
            self.seats = 0


class Turns:
    """Which turn of the loop it is, and whether a wide request has begun in it."""

    def __init__(self, over: Callable[[], None]) -> None:
        """`over`: called when the next turn may begin."""
        self.taken = False
        self._over = over

    def take(self) -> None:
        self.taken = True
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self.taken = False
        self._over()


class Level:
    def __init__(
        self, settings: LevelSettings, to_borrow: Callable[["Level"], int], turns: Turns
    ) -> None:
        self.settings = settings
        self._turns = turns
        self.in_use = 0
        self.queued = 0
        self.dispatched_requests = self.rejected = self.cancelled = 0
        self._calls = 0
        self.queues = [Queue() for _ in range(settings.queues)]
        self._active: dict[Queue, None] = {}  # in the order in which they became so
        self._to_borrow = to_borrow

    def idle_lendable(self) -> int:
        free = self.settings.seats - self.in_use
        return max(0, min(self.settings.lendable, free)) if not self.queued else 0

    def take(self, hand: Hand, seats: int, now: float) -> Seat | None:
        """At once, if there is room and nobody waits before it."""
        if self.settings.exempt:
            return Seat(self, None, 0, now)
        taken = self.in_use + seats
        if self.queued or (taken > self.settings.seats and not self._fits(seats)):
            return None
        if hand and (self._turns.taken or seats > 1):
            if self._turns.taken:
                return None
            self._turns.take()
        self.in_use = taken
        queue = hand[0] if hand else None
        if queue is not None:
            queue.served += seats * ESTIMATE_SECONDS
        return Seat(self, queue, seats, now)

    def line_up(self, hand: Hand, seats: int) -> "tuple[asyncio.Future[None], Queue] | None":
        """A place in the shortest queue of the flow's hand; None: there is none left."""
        if not hand:
            return None
        queue = min(hand, key=lambda item: len(item.waiting))
        if len(queue.waiting) >= self.settings.queue_length:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not queue.waiting:
            floor = min((item.served for item in self._active), default=queue.served)
            queue.served = max(queue.served, floor)
            self._active[queue] = None
        queue.waiting.append((future, seats))
        self.queued += 1
        return future, queue

    def give_up(self, future: asyncio.Future[None], queue: Queue) -> None:
        """It has waited too long, or its caller is gone."""
        for item in queue.waiting:
            if item[0] is future:
                queue.waiting.remove(item)
                self.queued -= 1
                break
        if not queue.waiting:
            self._active.pop(queue, None)

    def dispatched(self, queue: Queue, seats: int, now: float) -> Seat:
        """Of somebody who was called from a queue: the seat was taken when it was called."""
        return Seat(self, queue, seats, now)

    def left(self, seat: Seat, now: float) -> None:
        self.in_use -= seat.seats
        if seat.queue is not None:
            seat.queue.served += seat.seats * (now - seat.began - ESTIMATE_SECONDS)
        if self._active:
            self.dispatch()

    def dispatch(self) -> None:
        """Call whoever fits, the least served queue first."""
        while self._active and not self._turns.taken:
            queue = min(self._active, key=lambda item: (item.served, item.last))
            future, seats = queue.waiting[0]
            if not self._fits(seats):
                return
            queue.waiting.popleft()
            self._calls += 1
            queue.last = self._calls
            self.queued -= 1
            if not queue.waiting:
                self._active.pop(queue, None)
            if future.done():
                continue
            if seats > 1:
                self._turns.take()
            self.in_use += seats
            queue.served += seats * ESTIMATE_SECONDS
            future.set_result(None)

    def _fits(self, seats: int) -> bool:
        if self.in_use == 0 or self.in_use + seats <= self.settings.seats:
            return True
        return self.in_use + seats <= self.settings.seats + self._to_borrow(self)

    def hand(self, flow_hash: int) -> Hand:
        """Shuffle sharding: a few queues out of all, by the flow's hash, without repetition."""
        left = list(self.queues)
        hand = []
        for _ in range(min(self.settings.hand_size, len(left))):
            flow_hash, at = divmod(flow_hash, len(left))
            hand.append(left.pop(at))
        return tuple(hand)
