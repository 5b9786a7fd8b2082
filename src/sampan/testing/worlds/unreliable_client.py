"""A tiny API with a history and a plan of failures, for tests of list+watch.

Job: list and watch over an in-memory history, failing where the test says so; counts the calls.
Invariant: what it serves is what an API server serves: revisions grow by one, a watch gives every
    change after its revision in order, and a compacted revision is Expired.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable

from sampan.api.errors import ApiError, Expired
from sampan.api.objects import Obj, key_of
from sampan.api.resources import Resource
from sampan.client.contract import WHOLE, Listed, Page, WatchEvent


class UnreliableClient:
    """The reading half of a Client."""

    def __init__(self) -> None:
        self.revision = 1
        self.objects: dict[str, Obj] = {}
        self.history: list[tuple[int, WatchEvent]] = []
        self.compacted = 0
        self.lists = self.watches = self.open_watches = 0
        self._list_failures: deque[ApiError] = deque()
        self._watch_failures: deque[tuple[int, ApiError | None]] = deque()
        self._changed = asyncio.Event()

    def put(self, obj: Obj) -> Obj:
        key = key_of(obj)
        kind = "MODIFIED" if key in self.objects else "ADDED"
        stored = self._write(kind, obj)
        self.objects[key] = stored
        return stored

    def remove(self, key: str) -> None:
        self._write("DELETED", self.objects.pop(key))

    def compact(self) -> None:
        self.compacted = self.revision
        self.history.clear()

    def bookmark(self) -> None:
        """Something else was written: revisions move on, and watchers are told so."""
        self.revision += 1
        meta = {"resourceVersion": str(self.revision)}
        self._append(WatchEvent("BOOKMARK", {"metadata": meta}))

    def fail_lists(self, errors: Iterable[ApiError]) -> None:
        self._list_failures.extend(errors)

    def fail_watch(self, after_events: int, error: ApiError | None) -> None:
        """The next watch ends after so many events: with `error`, or cleanly where it is None."""
        self._watch_failures.append((after_events, error))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        revision: int | None = None,
        page: Page = WHOLE,
    ) -> Listed:
        self.lists += 1
        if self._list_failures:
            raise self._list_failures.popleft()
        keys = sorted(key for key in self.objects if key > page.continue_token)
        some = keys[: page.limit] if page.limit else keys
        rest = some[-1] if len(some) < len(keys) else ""
        return Listed([self.objects[key] for key in some], self.revision, rest)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        self.watches += 1
        remaining, error = self._watch_failures.popleft() if self._watch_failures else (-1, None)
        self.open_watches += 1
        try:
            while True:
                if revision < self.compacted:
                    raise Expired("too old resource version")
                for at, event in [one for one in self.history if one[0] > revision]:
                    if remaining == 0:
                        break
                    remaining -= 1
                    revision = at
                    yield event
                if remaining == 0:
                    if error is not None:
                        raise error
                    return
                self._changed.clear()
                await self._changed.wait()
        finally:
            self.open_watches -= 1

    def _write(self, kind: str, obj: Obj) -> Obj:
        self.revision += 1
        meta = {**obj["metadata"], "resourceVersion": str(self.revision)}
        stored = {**obj, "metadata": meta}
        self._append(WatchEvent(kind, stored))
        return stored

    def _append(self, event: WatchEvent) -> None:
        self.history.append((self.revision, event))
        self._changed.set()
