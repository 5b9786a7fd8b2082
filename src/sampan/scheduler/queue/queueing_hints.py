"""Queueing hints: which pods an event may help, by the cache as it is now.

Job: an event and pods that wait alike → those of them for whom another attempt is worth it.
Invariant: an event after which a pod could be scheduled is never answered without it.
"""

from collections.abc import Collection

from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.nominated_pods import Nominator, allows, with_pods
from sampan.scheduler.model.cluster_events import Event, PodGone
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.profile import Profile
from sampan.scheduler.queue.queue_state import Alike
from sampan.scheduler.queue.requeue import could_take, may_help


class Hints:
    def __init__(self, cache: CacheState, nominator: Nominator, profile: Profile) -> None:
        self._cache, self._nominator, self._profile = cache, nominator, profile
        # Who was refused by these alone can only be helped on the node where something changed.
        self._local = frozenset(
            rule.name for rule in profile.filters if rule.depends is not Depends.EVERYTHING
        )

    def helped(self, event: Event, alike: Alike, uids: Collection[str]) -> Collection[str]:
        if not may_help(event, alike.shape, alike.rules):
            return ()
        if isinstance(event, PodGone) and alike.rules <= self._local:
            return self._with_room_on(event.node, alike, uids)
        return uids

    def _with_room_on(self, node: str, alike: Alike, uids: Collection[str]) -> Collection[str]:
        columns = self._cache.columns
        row, at = columns.row(node), columns.snapshot().at.get(node)
        if row is None or at is None or not could_take(row, alike.shape):
            return ()
        if not allows(alike.shape, columns, self._profile, at):
            return ()
        expected = [item for item in self._nominator.on(node) if item.priority >= alike.priority]
        if not expected:
            return uids
        with with_pods(columns, node, expected):
            if allows(alike.shape, columns, self._profile, at):
                return uids
        return [item.uid for item in expected if item.uid in uids]
