"""Conversion of custom objects between versions, by webhook where there is one.

Job: make sure that items can be shown in the version that a call speaks; bring what is written
    into the version that is stored.
Invariant: an item is converted once for each version; what a webhook said of it is kept with it.
Why steps are done again with each form (`with_forms`): merging, patching and matching are pure, and
    learn in their middle that they need one; nothing is written before a step is through.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from sampan.api.calls import Event, Item
from sampan.api.custom.custom_version import CustomVersion, FormWanted, custom_of
from sampan.api.errors import Failure
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.apiserver.extension.conversion_webhook import (
    TIMEOUT_SECONDS,
    BadAnswer,
    converted_of,
    kind_text,
    review_of,
)
from sampan.apiserver.outside.configured_callers import ConfiguredCallers
from sampan.apiserver.outside.webhook_client import CallFailed
from sampan.apiserver.registry.custom_resources import (
    NotConverted,
    has_form,
    keep_form,
    shown_item,
)
from sampan.apiserver.registry.selection import Selection
from sampan.apiserver.watch.watch_stream import ConvertEvents
from sampan.core.side_thread import SideThread

T = TypeVar("T")
MOST_WANTED = 100  # forms that one write may need: a few for each version that somebody wrote in
LARGE_BYTES = 64 * 1024  # of objects: some 5 ms to bring into the form of a version
AT_ONCE_BYTES = 256 * 1024  # of objects that a webhook is asked about together


class Conversions:
    def __init__(
        self, callers: ConfiguredCallers, new_uid: Callable[[], str], side: SideThread
    ) -> None:
        self._callers, self._new_uid, self.side = callers, new_uid, side

    async def prepare(self, resource: Resource, items: Sequence[Item]) -> None:
        """After this every item can be shown as the resource's version has it. Raises Failure."""
        custom = custom_of(resource)
        if custom is None:
            return
        waiting = [item for item in items if not has_form(custom, item)]
        weight = sum(item.size for item in waiting)
        if waiting and not custom.is_compiled:
            weight += custom.schema_bytes
        if weight > LARGE_BYTES:
            # After a restart or a change of the definition, each is pruned and defaulted anew.
            await self.side.run(lambda: [_is_known(resource, item) for item in waiting])
        if custom.family.webhook is None:
            return
        missing: dict[str, list[Item]] = {}
        for item in items:
            if not _is_known(resource, item):
                missing.setdefault(str(item.obj.get("apiVersion")), []).append(item)
        for same in missing.values():
            for group in _portions(same):
                found = await self._converted(group, custom)
                for item, obj in zip(group, found, strict=True):
                    keep_form(item, custom, obj)

    async def _converted(self, items: Sequence[Item], custom: CustomVersion) -> list[Obj]:
        size = sum(item.size for item in items)
        shown = await self.beside(size, lambda: [_default(custom, item.obj) for item in items])
        return await self._convert(shown, custom, size)

    def events(self, resource: Resource, selection: Selection) -> ConvertEvents:
        """Events of a watch as the resource's version shows them, and selects them."""
        select = None if selection.shown is None else _Selected(selection.shown)

        async def shown(events: list[Event]) -> list[Event]:
            await self.prepare(
                resource, [event.item for event in events if event.type != "BOOKMARK"]
            )
            found = [_shown_event(resource, event) for event in events]
            if select is None:
                return found
            return [event for each in found if (event := select.event(each)) is not None]

        return shown

    async def stored(self, resource: Resource, obj: Obj) -> Obj:
        """In the version that is stored. Raises Failure."""
        custom = custom_of(resource)
        if custom is None or custom.is_storage:
            return obj
        if custom.family.webhook is None:
            return {**obj, "apiVersion": custom.family.storage.api_version}
        # How large it is nobody has counted yet: it is not known to be small.
        return (await self._convert([obj], custom.family.storage, LARGE_BYTES + 1))[0]

    async def with_forms(self, step: Callable[[], Awaitable[T]]) -> T:
        """A step that may need forms that only a webhook knows; it is done again with each one
        that it learns. Raises Failure."""
        for _ in range(MOST_WANTED):
            try:
                return await step()
            except FormWanted as wanted:
                found = await self._ask([wanted.obj], wanted.custom)
                wanted.custom.family.learn(wanted, found[0])
        raise Failure("conversion webhook answered, and what it was asked for is still not known")

    async def when_known(self, step: Callable[[], T], size: int = 0) -> T:
        """The same of a step that waits for nobody; beside the loop where what it looks at is
        large. Raises Failure."""

        async def done() -> T:
            return await self.beside(size, step)

        return await self.with_forms(done)

    async def beside(self, size: int, step: Callable[[], T]) -> T:
        """At once, or beside the loop where it is large."""
        return step() if size <= LARGE_BYTES else await self.side.run(step)

    async def _convert(self, objects: list[Obj], custom: CustomVersion, size: int) -> list[Obj]:
        """By the webhook; then pruned and with the defaults of the version."""
        found = await self._ask(objects, custom, size)
        return await self.beside(size, lambda: [custom.defaulted(obj) for obj in found])

    async def _ask(self, objects: list[Obj], custom: CustomVersion, size: int = 0) -> list[Obj]:
        webhook, uid = custom.family.webhook, self._new_uid()
        assert webhook is not None, custom.api_version
        review = review_of(objects, custom.api_version, uid)
        try:
            answer = await self._callers.post(
                webhook.get("clientConfig") or {}, review, TIMEOUT_SECONDS
            )
            return await self.beside(
                size, lambda: converted_of(answer, objects, custom.api_version, uid)
            )
        except CallFailed as error:
            why = f"conversion webhook for {kind_text(objects[0])} failed: {error}"
            raise Failure(why) from error
        except BadAnswer as error:
            told = str(error)
            if not told.startswith("conversion webhook for"):
                told = f"conversion webhook for {kind_text(objects[0])} failed: {told}"
            raise Failure(told) from error


def _portions(items: Sequence[Item]) -> Iterator[list[Item]]:
    """What is asked in one review: its answer is read in one piece, while nobody else has the
    interpreter, and may have as many values as a body."""
    portion: list[Item] = []
    size = 0
    for item in items:
        if portion and size + item.size > AT_ONCE_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(item)
        size += item.size
    if portion:
        yield portion


class _Selected:
    """Which objects a watcher has been shown, where only the form of its version tells whether it
    selects them: entering the selection is ADDED, leaving it is DELETED."""

    def __init__(self, matches: Callable[[Obj], bool]) -> None:
        self._matches = matches
        self._inside: dict[str, bool] = {}

    def event(self, event: Event) -> Event | None:
        if event.type == "BOOKMARK":
            return event
        key, item = event.item.key, event.item
        # Who watches from a revision on may have what was not changed since.
        was_inside = self._inside.pop(key, event.type != "ADDED")
        if event.type == "DELETED":
            return event if was_inside else None
        inside = self._inside[key] = self._matches(item.obj)
        if not inside:
            return Event("DELETED", item) if was_inside else None
        return event if was_inside or event.type == "ADDED" else Event("ADDED", item)


def _default(custom: CustomVersion, obj: Obj) -> Obj:
    """As the version in which it is stored shows it."""
    stored = custom.family.versions.get(str(obj.get("apiVersion")).rpartition("/")[2])
    return obj if stored is None else stored.defaulted(obj)


def _shown_event(resource: Resource, event: Event) -> Event:
    if event.type == "BOOKMARK":
        return event
    item = shown_item(resource, event.item)
    return event if item is event.item else Event(event.type, item)


def _is_known(resource: Resource, item: Item) -> bool:
    try:
        shown_item(resource, item)
    except NotConverted:
        return False
    return True
