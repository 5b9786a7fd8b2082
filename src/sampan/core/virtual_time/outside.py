"""The clients outside of an event loop with virtual time: those whom its time waits for.

Job: see what they ask and what they are told; say how long time must stand still for them; report
    who was waited for.
Invariant: nobody is waited for longer than the patience; who is expected is, until it watches.
    What had to wait for a processor costs no patience: a loaded machine is only slower.
Invariant: requests of the loop's own hands (`is_own`) are nobody's activity.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Handler, Reply, Request, Stream
from sampan.core.virtual_time.client_activity import LOOK_SECONDS, ClientActivity
from sampan.core.virtual_time.loop import SteppedLoop
from sampan.core.virtual_time.patience import ANYBODY, ARRIVAL_SECONDS, PATIENCE_SECONDS
from sampan.core.virtual_time.peer_processes import PeerProcesses

MOST_CLIENTS = 256
MOST_STARVED = 20  # times the patience, on a machine that is loaded
BOOKMARK_BYTES = 1024  # none is longer
OTHERS, NAMELESS = "others", "a client without a name"
# Elections go on whatever happens: they say nothing about the work of those who hold them.
_ELECTIONS = "/apis/coordination.k8s.io/"
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL = frozenset({"", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Waited:
    """For one client: how often, and how long in all."""

    client: str
    watches: int
    waits: int
    seconds: float
    restless: bool  # it was not quiet within the patience when it was last waited for


class Outside:
    def __init__(
        self,
        revision: Callable[[], int],
        monotonic: Callable[[], float],
        processes: PeerProcesses | None = None,
        is_own: Callable[[Request], bool] = lambda _request: False,
    ) -> None:
        """`revision`: how much has happened so far."""
        self._revision, self._now = revision, monotonic
        self._processes, self._is_own = processes, is_own
        self.patience_seconds = PATIENCE_SECONDS
        self._clients: dict[str, ClientActivity] = {}
        self._since: float | None = None  # a wait is on
        self._starved = 0.0  # when it began
        self._expected: dict[str, float] = {}  # whom, for how long
        self._deadlines: dict[str, float] = {}  # of those who are waited for by now
        self.missing: list[str] = []  # those who were expected and did not come

    def expect(self, name: str = ANYBODY, seconds: float | None = None) -> None:
        """A client with this in its name will watch (or anybody will ask for something): from the
        first wait on time does not move before, for so long."""
        default = self.patience_seconds if name == ANYBODY else ARRIVAL_SECONDS
        self._expected[name] = default if seconds is None else seconds

    @property
    def is_known(self) -> bool:
        """Whether anybody has asked for something, or is expected to."""
        return bool(self._clients or self._expected)

    @property
    def watches(self) -> int:
        return sum(each.watches for each in self._clients.values())

    def forget(self) -> None:
        """In a forked process: they are the other's."""
        self._clients.clear()
        self._expected.clear()
        self._deadlines.clear()
        self._since = None

    def report(self) -> Sequence[Waited]:
        """Who was waited for the longest first."""
        found = [
            Waited(each.name, each.watches, each.waits, each.waited_seconds, each.restless)
            for each in self._clients.values()
        ]
        return sorted(found, key=lambda waited: -waited.seconds)

    def wait_seconds(self) -> float:
        """How long time must stand still, by the machine's: then ask again. 0.0: it may move."""
        if not self._clients and not self._expected:
            return 0.0
        now, revision = self._now(), self._revision()
        if self._expected and self._waits_for_arrivals(now):
            return LOOK_SECONDS
        concerned = [each for each in self._clients.values() if each.concerns(now, revision)]
        if not concerned:
            return 0.0
        if self._since is None:
            self._since = now
            self._starved = self._starved_seconds()
        if (left := self._left(concerned, self._since, now)) > 0:
            return left
        for each in concerned:
            each.waited(now - self._since, quiet=each.is_silent(now, revision))
        self._since = None
        return 0.0

    def _left(self, concerned: Sequence[ClientActivity], since: float, now: float) -> float:
        """Of the wait for them, which began then."""
        quiet = max((each.quiet_seconds for each in concerned if not each.polls(now)), default=0.0)
        if self._is_spent(now - since):
            if self._processes is not None:
                self._processes.give_up(quiet)
            return 0.0
        left = max(each.remaining(now, since, self._revision()) for each in concerned)
        if self._processes is None or not quiet:
            return left
        if not self._processes.have_rested(quiet):
            return LOOK_SECONDS
        return min(left, LOOK_SECONDS)  # what they do in between is seen

    def _is_spent(self, seconds: float) -> bool:
        """The patience, by a wait for so long."""
        if seconds < self.patience_seconds:
            return False
        starved = self._starved_seconds() - self._starved
        return max(seconds - starved, seconds / MOST_STARVED) >= self.patience_seconds

    def _starved_seconds(self) -> float:
        if self._processes is None:
            return 0.0
        self._processes.busy()
        return self._processes.starved_seconds

    def around(self, handler: Handler) -> Handler:
        """The same handler; who asks is noted, and the watches that it answers with are, too."""

        async def handle(request: Request) -> Reply:
            if request.path.startswith(_ELECTIONS) or self._is_own(request):
                return await handler(request)
            client, watches = self._client_of(request), "watch=" in request.query
            reads = request.method in _READS and not watches
            read = f"{request.path}?{request.query}" if reads else ""
            if not client.asked(self._now(), read, self._revision()):
                return await handler(request)
            try:
                reply = await handler(request)
            finally:
                client.answered(self._now())
            if watches and isinstance(reply, Stream):
                return Stream(reply.status, reply.headers, self._followed(client, reply.chunks))
            return reply

        return handle

    @contextmanager
    def abroad(self, url: str) -> Iterator[None]:
        """Somebody outside is asked for something: his answer is waited for."""
        server = self._named("/".join(url.split("/", 3)[:3]))
        server.asking += 1
        try:
            yield
        finally:
            server.asking -= 1

    def _waits_for_arrivals(self, now: float) -> bool:
        for name, seconds in list(self._expected.items()):
            late = now >= self._deadlines.setdefault(name, now + seconds)
            if late or self._has_come(name):
                del self._expected[name], self._deadlines[name]
            if late and name and not self._has_come(name):
                self.missing.append(name)
        return bool(self._expected)

    def _has_come(self, name: str) -> bool:
        if name == ANYBODY:
            return bool(self._clients)
        return any(name in each.name and each.watches for each in self._clients.values())

    def _client_of(self, request: Request) -> ClientActivity:
        program = request.headers.get("user-agent", "").split(" ", 1)[0] or NAMELESS
        return self._named(
            program if request.remote in _LOCAL else f"{program} at {request.remote}"
        )

    def _named(self, name: str) -> ClientActivity:
        found = self._clients.get(name)
        if found is None:
            name = name if len(self._clients) < MOST_CLIENTS else OTHERS
            found = self._clients.setdefault(name, ClientActivity(name))
        return found

    async def _followed(
        self, client: ClientActivity, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        client.follows()
        try:
            async with closing(chunks):
                async for chunk in chunks:
                    if not _is_bookmark(chunk):
                        client.told(self._now())
                    yield chunk
        finally:
            client.left(self._now())


def outside_of(
    loop: SteppedLoop, revision: Callable[[], int], is_own: Callable[[Request], bool]
) -> Outside:
    """From now on the loop's time waits for them."""
    processes = PeerProcesses(loop.machine_time)
    found = Outside(revision, loop.machine_time, processes, is_own)
    loop.outside_wait, loop.abroad = found.wait_seconds, found.abroad
    return found


def told(waited: Iterable[Waited]) -> list[str]:
    """A line for each client that was waited for."""
    return [
        f"{each.client}: {each.waits} times, {each.seconds:.1f} s"
        + (f", {each.watches} watches" if each.watches else "")
        + (", and was not quiet within the patience" if each.restless else "")
        for each in waited
        if each.waits
    ]


def _is_bookmark(chunk: bytes) -> bool:
    """In JSON or protobuf: it says only how far the watch is."""
    return len(chunk) < BOOKMARK_BYTES and b"BOOKMARK" in chunk[:64]


@asynccontextmanager
async def closing(chunks: AsyncIterator[bytes]) -> AsyncIterator[None]:
    """Whoever stops early lets the server's watch go."""
    try:
        yield
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
