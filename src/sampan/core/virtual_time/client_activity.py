"""One client of a cluster with virtual time: what it was told, what it asks, whether it is quiet.

Job: fold what is seen of a client into its state; say how long it is still to be waited for. No
    clock, no I/O: moments are the machine's monotonic time, and arguments.
Invariant: a client that was told nothing, and that asks for nothing, is not waited for.
Invariant: how long it must be silent to be quiet follows from how late it was with its reactions.
Invariant: what it reads again and again is no sign of life, but a change that it has not read yet
    is one that it was not told of.
"""

from collections import deque

from sampan.core.bounded import Recent

LEAST_SECONDS = 0.05  # of silence
FIRST_SECONDS = 0.25  # of one that watches and whose pace is not known yet
MOST_SECONDS = 2.0
LATE_SECONDS = 1.0  # after so long a request is no reaction any more
LOOK_SECONDS = 0.02  # where nobody knows how long it will be
REMEMBERED = 20
KNOWN = 4  # reactions after which its pace is: what it asks as it starts may be quicker
POLL_SECONDS = 2.5  # between two readings of one thing
POLLS = 3
MOST_PATHS = 64


class ClientActivity:
    def __init__(self, name: str) -> None:
        self.name = name
        self.watches, self.asking = 0, 0  # open streams; requests that are not answered
        self.waits, self.waited_seconds = 0, 0.0
        self.restless = False  # it was not quiet as long as anybody had patience
        self.has_watched = False
        self._stirred = False  # since it was last found quiet
        self._last = 0.0
        self._slowest = 0.0  # reaction of this wait
        self._slow: deque[float] = deque(maxlen=REMEMBERED)  # of waits in which it reacted
        self._calm = 0  # waits in which it did not
        # Path → how often in a row, when last.
        self._reads: Recent[str, tuple[int, float]] = Recent(MOST_PATHS)
        self._next_poll, self._read_revision = 0.0, 0  # it reads again until then

    # What is seen of it.

    def asked(self, now: float, read: str = "", revision: int = 0) -> bool:
        """A request has come: of what it reads there, empty where it writes or begins a watch.
        `revision`: how much has happened so far. Whether it counts, so that its answer does."""
        if read and not self.watches and self._polls(now, read):
            if revision == self._read_revision:
                return False
            self._read_revision = revision
        gap = now - self._last
        if gap <= LATE_SECONDS and (self._stirred or self.watches):
            self._slowest = max(self._slowest, gap)
            if not self._stirred:  # it was thought to be quiet: next time it gets longer
                self._remember()
        self.asking += 1
        self._stirred, self._last = True, now
        return True

    def answered(self, now: float) -> None:
        self.asking -= 1
        self._stirred, self._last = True, now

    def follows(self) -> None:
        self.watches += 1
        self.has_watched = True

    def left(self, now: float) -> None:
        """One of its watches is over."""
        self.watches -= 1
        self._stirred, self._last = True, now

    def told(self, now: float) -> None:
        """Of something that it watches."""
        self._stirred, self._last = True, now

    # What follows from it.

    @property
    def quiet_seconds(self) -> float:
        """So long it must be silent."""
        least = LEAST_SECONDS
        if self.has_watched and len(self._slow) < KNOWN and self._calm < REMEMBERED:
            least = FIRST_SECONDS
        return min(MOST_SECONDS, max(least, 2 * max(self._slow, default=0.0) + LEAST_SECONDS))

    def polls(self, now: float) -> bool:
        """It reads something again and again, and is at work whenever it does."""
        return now <= self._next_poll and not self.watches

    def concerns(self, now: float, revision: int) -> bool:
        return self._stirred or self.asking > 0 or self._has_to_read(now, revision)

    def remaining(self, now: float, since: float, revision: int) -> float:
        """Seconds; `since`: when the wait began."""
        if self.restless:
            return max(0.0, since + self.quiet_seconds - now)
        if self.asking or self._has_to_read(now, revision):
            return LOOK_SECONDS
        return max(0.0, self._last + self.quiet_seconds - now) if self._stirred else 0.0

    def waited(self, seconds: float, *, quiet: bool) -> None:
        """The wait is over."""
        self.waits += 1
        self.waited_seconds += seconds
        self.restless = not quiet
        if self._slowest:
            self._remember()
        else:
            self._calm += 1
        self._stirred = False

    def is_silent(self, now: float, revision: int) -> bool:
        """Whatever was thought of it before."""
        waits = self.asking > 0 or self._has_to_read(now, revision)
        return not waits and (not self._stirred or now - self._last >= self.quiet_seconds)

    def _remember(self) -> None:
        self._slow.append(self._slowest)
        self._slowest = 0.0

    def _polls(self, now: float, path: str) -> bool:
        count, before = self._reads.get(path, (0, now))
        gap = now - before
        count = count + 1 if gap <= POLL_SECONDS else 1
        self._reads[path] = (count, now)
        if count < POLLS:
            return False
        self._next_poll = now + max(2 * gap, LEAST_SECONDS)
        return True

    def _has_to_read(self, now: float, revision: int) -> bool:
        return self.polls(now) and revision != self._read_revision
