"""Informers: a true local copy of a resource, and callbacks for each change to it.

Job: fold the reflector's changes into the cache and tell the listeners, in order.
Invariant: a listener sees (None, new), then (old, new) any number of times, then (old, None); one
    that is added late first sees all that is there.
Invariant: when a listener is called, the cache already has the change.
Owner: Informers, one per process and identity; the cache is written here and nowhere else.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, key_of
from sampan.api.resources import Resource
from sampan.api.rules.aspects import ANOTHER, ANYTHING, Interest, controller_kind
from sampan.client.contract import Client
from sampan.client.indexer import Cache, Difference, IndexFunction
from sampan.client.reflector import Change, Delete, Put, Reflector, Selection
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks, isolated

log = get_logger(__name__)

Listener = Callable[[Obj | None, Obj | None], None]
IN_ANYTHING = Interest()
PART = 64  # of a list, that the listeners hear of in one go
FILL = 256  # of the first list, that come into the cache in one go


class Informer:
    def __init__(
        self,
        client: Client,
        selection: Selection,
        *,
        clock: Clock,
        indices: Mapping[str, IndexFunction] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.resource = selection.resource
        self.cache = Cache(indices)
        self._reflector = Reflector(client, selection, clock=clock, rng=rng or random.Random())
        self._listeners: dict[Listener, Interest] = {}  # in the order in which they hear
        # Whom a change concerns, by what it touches and the kind of the object's controller.
        self._concerned: dict[tuple[int, str | None], Sequence[Listener]] = {}
        self._controllers: frozenset[str] = frozenset()  # kinds that listeners ask for
        self._once: list[Callable[[], None]] = []
        self._untold: list[Difference] = []  # of the last list
        self._first: list[Obj] | None = None  # the first list, while the cache is filled with it
        self._relisted: list[Callable[[], None]] = []
        self._synced, self._answered = asyncio.Event(), asyncio.Event()

    @property
    def refusal(self) -> ApiError | None:
        """Why the server does not let us see the kind now, if it does not."""
        return self._reflector.refusal

    @property
    def revision(self) -> int:
        """The cache holds everything up to here."""
        return self._reflector.revision

    def is_synced(self) -> bool:
        return self._synced.is_set()

    def on_change(self, listener: Listener, interest: Interest = IN_ANYTHING) -> None:
        """`listener(old, new)`, called synchronously; it must be quick. Of what
        it is not interested in, it may hear or not."""
        self._listeners[listener] = interest
        self._weigh_interests()
        if self._first is not None:
            return  # it hears of the first list with the others
        for obj in list(self.cache.all()):
            _call((listener,), None, obj)

    def at_next_change(self, told: Callable[[], None]) -> None:
        """Called once, when the listeners have heard of the next change, whatever it touches."""
        self._once.append(told)

    def on_relist(self, listener: Callable[[], None]) -> None:
        """Called when a whole new list has replaced what was known: whatever came and went in
        between has left no change to be told of."""
        self._relisted.append(listener)

    def remove(self, listener: Listener) -> None:
        """It hears of nothing more."""
        self._listeners.pop(listener, None)
        self._weigh_interests()

    async def run(self) -> None:
        """Until cancelled: nobody is told of anything afterwards."""
        try:
            await self._reflector.run(self._apply, self._answered.set, self._tell_list)
        except asyncio.CancelledError:
            # Who is told mostly knows the informer, too: of such circles the garbage collector
            # frees only those that it finds young.
            self._listeners, self._once, self._relisted = {}, [], []
            self._weigh_interests()
            raise

    async def synced(self) -> None:
        """Returns when the first whole list is in the cache and the listeners have seen it."""
        await self._synced.wait()

    async def answered(self) -> None:
        """Returns when it is synced, or when the server has said that it will not show the kind."""
        await self._answered.wait()

    def _apply(self, change: Change) -> None:
        if isinstance(change, Put):  # nearly always
            self._tell(self.cache.put(change.object))
        elif isinstance(change, Delete):
            self._tell(self.cache.remove(change.object))
        elif not self._synced.is_set() and not len(self.cache):
            self._first = list(
                change.items
            )  # nobody counts on the cache yet: it is filled in parts
        else:
            # The listeners of one change must not see the cache halfway through the list.
            self._untold = self.cache.replace(change.items)

    async def _tell_list(self) -> None:
        """In parts, where it is long: others have the loop in between. Who comes meanwhile was told
        of everything when it came."""
        await self._fill()
        differences, self._untold = self._untold, []
        listeners = list(self._listeners)
        for first in range(0, len(differences), PART):
            if first:
                await asyncio.sleep(0)
            still = [listener for listener in listeners if listener in self._listeners]
            for old, new, _ in differences[first : first + PART]:
                _call(still, old, new)
        if differences:
            self._tell_waiting()
        again = self._synced.is_set()
        self._synced.set()
        self._answered.set()
        for relisted in self._relisted if again else ():
            relisted()

    async def _fill(self) -> None:
        items = self._first or []
        for first in range(0, len(items), FILL):
            if first:
                await asyncio.sleep(0)
            for obj in items[first : first + FILL]:
                self._untold += self.cache.put(obj)
        self._first = None

    def _tell(self, differences: list[Difference]) -> None:
        for old, new, touches in differences:
            kind: str | None = ANOTHER
            if self._controllers:
                kind = controller_kind(touches, old, new)
                if kind not in self._controllers and kind:
                    kind = ANOTHER
            concerned = self._concerned.get((touches, kind))
            if concerned is None:
                concerned = self._concerned[touches, kind] = [
                    listener
                    for listener, interest in self._listeners.items()
                    if interest.is_met(touches, kind)
                ]
            _call(concerned, old, new)
            if self._once:
                self._tell_waiting()

    def _tell_waiting(self) -> None:
        waiting, self._once = self._once, []
        for told in waiting:
            told()

    def _weigh_interests(self) -> None:
        self._concerned = {}  # a new one: the old one may be in use
        interests = self._listeners.values()
        self._controllers = frozenset(item.controller for item in interests) - {ANOTHER}
        if any(item.aspects not in (0, ANYTHING) for item in interests):
            self.cache.compare()


def _call(listeners: Iterable[Listener], old: Obj | None, new: Obj | None) -> None:
    """What one listener makes of one object stops neither the others nor the objects to come."""
    if isolated("event handler failed", listeners, old, new):
        obj = new if new is not None else old or {}
        log.warning("object without a usable key skipped", kind=obj.get("kind"), key=key_of(obj))


class Informers:
    """The informers that the parts of one process share: one watch per selection."""

    def __init__(self, client: Client, *, clock: Clock, rng: random.Random | None = None) -> None:
        self._client, self._clock = client, clock
        self._rng = rng or random.Random()
        self._informers: dict[Selection, Informer] = {}
        self._tasks = Tasks("informers")
        self._running: dict[Selection, asyncio.Task[None]] = {}
        self._users: Counter[Selection] = Counter()
        self._started = False

    def of(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indices: Mapping[str, IndexFunction] | None = None,
    ) -> Informer:
        """The informer for this selection, made on first use; it runs once `start` was called,
        until each user of it has released it."""
        selection = Selection(resource, namespace, label_selector, field_selector)
        self._users[selection] += 1
        informer = self._informers.get(selection)
        if informer is None:
            informer = self._informers[selection] = self._informer(selection)
            if self._started:
                self._run(selection, informer)
        for name, function in (indices or {}).items():
            informer.cache.add_index(name, function)
        return informer

    def start(self) -> None:
        if self._started:
            return
        self._started = True
        for selection, informer in self._informers.items():
            self._run(selection, informer)

    def release(self, resource: Resource) -> None:
        """One user less of the informer for all objects of a resource; the last one stops it."""
        selection = Selection(resource)
        assert self._users[selection] > 0, f"{resource.group_resource} was released too often"
        self._users[selection] -= 1
        if self._users[selection]:
            return
        del self._users[selection]
        self._informers.pop(selection, None)
        task = self._running.pop(selection, None)
        if task is not None:
            task.cancel()

    def all(self) -> list[Informer]:
        return list(self._informers.values())

    async def synced(self) -> None:
        """Waits for all that there are now."""
        for informer in self.all():
            await informer.synced()

    async def answered(self) -> None:
        """Likewise, but for those that the server will not show."""
        for informer in self.all():
            await informer.answered()

    async def stop(self) -> None:
        await self._tasks.stop()

    def _informer(self, selection: Selection) -> Informer:
        return Informer(self._client, selection, clock=self._clock, rng=self._rng)

    def _run(self, selection: Selection, informer: Informer) -> None:
        name = informer.resource.group_resource
        self._running[selection] = self._tasks.supervise(name, informer.run)
