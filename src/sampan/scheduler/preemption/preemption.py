"""Preemption carried out: a refused pod → a node that is being cleared for it, or why none is.

Job: ask preempt.py (and the extenders) whom to remove, nominate the node, remove the victims in the
    background.
Invariant: a pod whose victims are being told is not asked about again.
Invariant: nobody is removed while it is not known which budgets there are.
Owner: the scheduler's loop.
"""

import asyncio
import random
from collections.abc import Callable
from functools import partial

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, key_of
from sampan.client.informer import Informer
from sampan.core.log import get_logger
from sampan.core.tasks import all_of
from sampan.scheduler.binding.api_call_limiter import CALL_SECONDS
from sampan.scheduler.binding.cycle_parts import CycleParts
from sampan.scheduler.decision.decide import Refused
from sampan.scheduler.decision.plugin_verdicts import ExtenderFailed
from sampan.scheduler.intake import Works
from sampan.scheduler.model.assigned_pod import AssignedPod, once_assigned
from sampan.scheduler.model.pod_info import PodInfo
from sampan.scheduler.preemption.budgets import Budget, budget_of
from sampan.scheduler.preemption.evict import evict, tell
from sampan.scheduler.preemption.victims import (
    NOT_HELPFUL,
    WAITING,
    Candidate,
    Hopeless,
    Preemptor,
    best,
    candidates,
    not_eligible,
    preempt,
)
from sampan.scheduler.profile import Profile
from sampan.scheduler.why.explain import nobody_to_preempt, not_preempted

log = get_logger(__name__)

BUDGETS_UNKNOWN = "not eligible: the API does not show PodDisruptionBudgets."


class Preemption:
    def __init__(self, parts: CycleParts, rng: random.Random) -> None:
        self._client, self._clock, self._rng = parts.client, parts.clock, rng
        self._cache, self._pending, self._reports = parts.cache, parts.pending, parts.reports
        self._measures, self._calls, self._outside = parts.measures, parts.calls, parts.outside
        self._intake = parts.intake
        self._budgets: dict[str, Budget] = {}  # by namespace/name
        self._are_budgets_known: Callable[[], bool] = lambda: False
        self._evicting: set[str] = set()  # pods whose victims are being told

    def follow_budgets(self, informer: Informer) -> None:
        self._are_budgets_known = informer.is_synced
        informer.on_change(self._intake.through(self._budget_changed))

    def _budget_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self._budgets[key_of(new)] = budget_of(new)
        elif old is not None:
            self._budgets.pop(key_of(old), None)

    async def make_room(
        self, pod: Obj, row: PodInfo, refused: Refused, profile: Profile, works: Works
    ) -> tuple[str | None, str]:
        """The node that is being cleared (None: nothing changes; empty: none any more), and what
        there is to say about it. `works`: by whom it is worked out."""
        nominator = self._pending.nominator
        if not refused.all_nodes or not profile.preempts or refused.is_early:
            return None, ""
        if row.uid in self._evicting:
            return None, WAITING
        if not self._are_budgets_known():
            return None, BUDGETS_UNKNOWN
        if why_not := not_eligible(row, nominator, self._cache):
            return None, why_not
        if refused.beforehand or not self._cache.any_below(row.priority):
            self._measures.preempted(0)
            nominator.remove(row.uid)
            return "", nobody_to_preempt(refused)
        budgets = tuple(self._budgets.values())
        asked = Preemptor(self._cache, profile, budgets, nominator)
        try:
            found = await self._found_victims(pod, row, asked, works)
        except ExtenderFailed as error:
            return None, f"{error}."
        if isinstance(found, Hopeless):
            self._measures.preempted(0)
            nominator.remove(row.uid)
            return "", not_preempted(refused.all_nodes, found.reasons)
        self._clear(row, found)
        return found.node, ""

    async def _found_victims(
        self, pod: Obj, row: PodInfo, asked: Preemptor, works: Works
    ) -> Candidate | Hopeless:
        if not self._outside.weigh_victims_of(pod):
            return await works(partial(preempt, row, asked, self._rng))
        found = await works(lambda: list(candidates(row, asked, self._rng)))
        those = await self._outside.left_of(pod, found)
        if not those:
            return Hopeless(((NOT_HELPFUL, len(self._cache.columns)),))
        return best(those, self._rng)

    def _clear(self, row: PodInfo, found: Candidate) -> None:
        self._measures.preempted(len(found.victims))
        log.info("preempting pods", pod=row.key, node=found.node, victims=len(found.victims))
        nominator = self._pending.nominator
        for item in nominator.on(found.node):
            if item.priority < row.priority:
                self._not_expected_any_more(item.uid)
        nominator.put(once_assigned(row), found.node)
        self._evicting.add(row.uid)
        self._calls.start("evict", self._evicted(row, found))

    def nominate(self, row: PodInfo, node: str) -> bool:
        """A plugin makes room there; False where there is no such node."""
        if self._cache.columns.row(node) is None:
            log.warning(
                "PostFilter plugin nominated a node that does not exist", pod=row.key, node=node
            )
            return False
        self._pending.nominator.put(once_assigned(row), node)
        return True

    def _not_expected_any_more(self, uid: str) -> None:
        self._pending.nominator.remove(uid)
        pod = self._pending.objects.get(uid)
        if pod is not None:
            self._reports.not_nominated(pod)
            self._pending.activate(uid)

    async def _evicted(self, row: PodInfo, found: Candidate) -> None:
        try:
            going = [victim for victim in found.victims if not victim.terminating]
            await all_of(self._evict_one(item, row, found.node) for item in going)
        except (ApiError, OSError) as error:
            log.warning("preemption failed", pod=row.key, node=found.node, error=error)
            # As upstream: there may be no event to wait for, so the pod tries again.
            self._pending.activate(row.uid)
        finally:
            self._evicting.discard(row.uid)

    async def _evict_one(self, victim: AssignedPod, row: PodInfo, node: str) -> None:
        async with asyncio.timeout(CALL_SECONDS):
            if await evict(self._client, victim, row.scheduler, self._clock.now()):
                tell(self._reports.events, victim, row.uid, node)
