"""Pending pods: their rows in the queue, their objects, their nominated nodes.

Job: keep the three in step.
Invariant: a pod that is not in the queue has no object here and is expected nowhere.
Owner: the scheduler's loop.
"""

from collections.abc import Callable

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.nominated_pods import Nominator
from sampan.scheduler.model.assigned_pod import once_assigned
from sampan.scheduler.model.cluster_events import Event, PodGone
from sampan.scheduler.model.pod_info import PodInfo, nominated_of
from sampan.scheduler.queue.queue_state import QueueState


class Pending:
    def __init__(
        self,
        queue: QueueState,
        nominator: Nominator,
        cache: CacheState,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self.queue, self.nominator = queue, nominator
        self._cache, self._clock, self.wake = cache, clock, wake
        self.objects: dict[str, Obj] = {}  # by uid

    def put(self, row: PodInfo, pod: Obj) -> None:
        before = self.objects.get(row.uid)
        self.objects[row.uid] = pod
        if self._cache.node_of(row.uid) is not None:
            pass  # it is on its way there: its room is taken already
        elif row.nominated:
            self.nominator.put(once_assigned(row), row.nominated)
        elif before is not None and nominated_of(before):
            self.nominator.remove(row.uid)  # somebody took it back
        self.queue.put(row, self._clock.monotonic())
        self.wake()

    def remove(self, uid: str) -> None:
        self.queue.remove(uid)
        self.objects.pop(uid, None)
        self.nominator.remove(uid)

    def withdraw(self, uid: str) -> None:
        """A pod that waited is gone; who was kept off the room that was made for it may have it."""
        waiting, node = self.queue.get(uid), self.nominator.node_of(uid)
        self.remove(uid)
        if node and waiting is not None:
            self.happened(PodGone(once_assigned(waiting.pod), node))

    def activate(self, uid: str) -> None:
        """Try it at once, whatever it waits for."""
        self.queue.activate(uid, self._clock.monotonic())
        self.wake()

    def happened(self, event: Event | None) -> None:
        if event is not None:
            self.queue.event(event, self._clock.monotonic())
            self.wake()

    def undone(self, uid: str) -> None:
        """What was assumed of a pod did not come true: its room is given back."""
        self.happened(self._cache.forget(uid))
