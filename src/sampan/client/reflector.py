"""List and watch: keeps a copy of one resource true, whatever happens to the connection.

Job: turn a Client's list and watch into Replace, Put and Delete; resume, relist, back off.
Invariant: no change is lost: a broken watch resumes after the last revision that was applied, and
    where the server no longer keeps that revision, a whole new list replaces everything.
Invariant: the last revision never falls, except by a new list.
Owner: the Informer that runs it.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from sampan.api.errors import (
    ApiError,
    Expired,
    Gone,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    UnknownPath,
)
from sampan.api.objects import Obj, revision_of
from sampan.api.resources import Resource
from sampan.client.contract import Client, Page, WatchEvent
from sampan.core.backoff import Backoff, with_jitter
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

# As client-go's reflector: 0.8 s doubling to 30 s, each up to twice as long.
BACKOFF = Backoff(first_seconds=0.8, cap_seconds=30.0)
JITTER = 1.0
# A watch that ends so soon without an event is a failure; rewatching at once would spin.
SHORTEST_WATCH_SECONDS = 1.0
PAGE_SIZE = 500
# The server could not serve us now, but nothing says that our revision is worthless.
RESUMABLE = (TooManyRequests, InternalError, ServiceUnavailable, Timeout)


@dataclass(frozen=True, slots=True)
class Replace:
    """Everything there is, at `revision`."""

    items: Sequence[Obj]
    revision: int


@dataclass(frozen=True, slots=True)
class Put:
    object: Obj


@dataclass(frozen=True, slots=True)
class Delete:
    object: Obj  # its last state


Change = Replace | Put | Delete


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of which resource."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


class Reflector:
    def __init__(
        self, client: Client, selection: Selection, *, clock: Clock, rng: random.Random
    ) -> None:
        self._client, self._selection = client, selection
        self._clock, self._rng = clock, rng
        self._revision: int | None = None  # None: a new list is needed
        self._listed_before = False
        self._failures = 0
        self._told = ""  # the refusal that was logged last
        self.refusal: ApiError | None = None  # the server does not let us see the kind, or lacks it

    @property
    def revision(self) -> int:
        """Up to where everything has been applied; 0 before the first list."""
        return self._revision or 0

    async def run(
        self,
        apply: Callable[[Change], None],
        refuse: Callable[[], None],
        listed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Until cancelled. `apply` is called in order, `refuse` when the kind is not shown; neither
        may fail. `listed` may take its time over a new list before changes to it come."""
        while True:
            try:
                if self._revision is None:
                    await self._list(apply)
                    if listed is not None:
                        await listed()
                await self._watch(apply)
            except (Expired, Gone) as error:
                log.info("watch is too far behind, listing again", **self._log_fields(error))
                self._revision = None
                await self._pause(error)
            except RESUMABLE as error:
                log.warning("list or watch failed, trying again", **self._log_fields(error))
                await self._pause(error)
            except ApiError as error:
                # What was known stays: that we may not see a kind now, or that an older server
                # lacks it, does not say that its objects are gone.
                self._note_refusal(error)
                refuse()
                self._revision = None
                await self._pause(error)

    async def _list(self, apply: Callable[[Change], None]) -> None:
        # The first list takes what the server's cache has: the watch brings the rest. Later ones
        # ask for the newest state, so that what we know never goes back in time.
        at: int | None = None if self._listed_before else 0
        items: list[Obj] = []
        token = ""
        selection = self._selection
        while True:
            page = await self._client.list(
                selection.resource,
                selection.namespace,
                label_selector=selection.label_selector,
                field_selector=selection.field_selector,
                revision=at if not token else None,
                # A list from the cache comes whole; only a consistent read is worth paging.
                page=Page(0 if at == 0 else PAGE_SIZE, token),
            )
            items += page.items
            token = page.continue_token
            if not token:
                break
        self._listed_before = True
        self._told, self.refusal = "", None
        self._revision = page.revision
        apply(Replace(items, page.revision))

    async def _watch(self, apply: Callable[[Change], None]) -> None:
        assert self._revision is not None
        selection = self._selection
        started = self._clock.monotonic()
        events = self._client.watch(
            selection.resource,
            selection.namespace,
            revision=self._revision,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
        )
        seen = 0
        try:
            async for event in events:
                seen += 1
                self._failures = 0
                self._take(event, apply)
        finally:
            await _close(events)
        if seen == 0 and self._clock.monotonic() - started < SHORTEST_WATCH_SECONDS:
            raise ServiceUnavailable("the watch ended at once, without an event")
        self._failures = 0

    def _take(self, event: WatchEvent, apply: Callable[[Change], None]) -> None:
        if event.type in ("ADDED", "MODIFIED"):
            apply(Put(event.object))
        elif event.type == "DELETED":
            apply(Delete(event.object))
        elif event.type != "BOOKMARK":
            raise InternalError(f"unexpected watch event {event.type}")
        self._revision = max(self._revision or 0, revision_of(event.object))

    async def _pause(self, error: ApiError) -> None:
        self._failures += 1
        seconds = with_jitter(BACKOFF.delay(self._failures), JITTER, self._rng)
        if isinstance(error, Expired | Gone) and self._failures == 1:
            seconds = 0.0  # nothing is wrong with the server: it has only moved on
        await self._clock.sleep(max(seconds, float(error.retry_after_seconds or 0)))

    def _note_refusal(self, error: ApiError) -> None:
        """Told once, however often it is tried: until it is another trouble, or over."""
        self.refusal = error.with_traceback(None)  # whose frames have us
        if self._told != error.message:
            self._told = error.message
            absent = isinstance(error, NotFound | UnknownPath)
            sentence = "kind is not served" if absent else "list or watch was refused"
            log.warning(f"{sentence}, trying again", **self._log_fields(error))

    def _log_fields(self, error: ApiError) -> dict[str, object]:
        return {
            "resource": self._selection.resource.group_resource,
            "revision": self._revision,
            "error": error,
        }


async def _close(events: AsyncIterator[WatchEvent]) -> None:
    """Ends the server's side now, not when the garbage collector comes by."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
