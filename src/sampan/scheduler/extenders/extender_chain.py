"""All extenders of a scheduler, asked in their order.

Job: gather their say; pass over those that fail and may be passed over.
Invariant: each is asked only about what those before it left.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampan.api.objects import Obj, name_of
from sampan.core.log import get_logger
from sampan.scheduler.decision.plugin_verdicts import Answer, ExtenderFailed
from sampan.scheduler.preemption.victims import Candidate, narrow

if TYPE_CHECKING:  # loaded where a configuration asks for one
    from sampan.scheduler.extenders.extender import Extender

log = get_logger(__name__)


class Extenders:
    def __init__(self, extenders: "Sequence[Extender]") -> None:
        self._extenders = tuple(extenders)
        # What the scheduler itself does not count: they do.
        self.resources = frozenset(
            name for extender in self._extenders for name in extender.settings.not_ours
        )

    def __bool__(self) -> bool:
        return bool(self._extenders)

    def concern(self, pod: Obj) -> bool:
        return any(extender.is_interested(pod) for extender in self._extenders)

    def weigh_victims_of(self, pod: Obj) -> bool:
        return bool(self._preempting(pod))

    async def answers(self, pod: Obj, nodes: list[Obj]) -> list[Answer]:
        """About nodes that are feasible otherwise. Raises ExtenderFailed."""
        found = []
        for extender in self._extenders:
            if not nodes or not extender.is_interested(pod):
                continue
            try:
                answer = await extender.answer(pod, nodes)
            except ExtenderFailed as error:
                _passed_over(extender, error)
                continue
            found.append(answer)
            if answer.allowed is not None:
                nodes = [node for node in nodes if name_of(node) in answer.allowed]
        return found

    async def left_of(self, pod: Obj, those: list[Candidate]) -> list[Candidate]:
        """The candidates that all would clear. Raises ExtenderFailed."""
        for item in self._preempting(pod):
            if those:
                try:
                    those = narrow(those, await item.preempted(pod, those))
                except ExtenderFailed as error:
                    _passed_over(item, error)
        return those

    async def bound(self, pod: Obj, node: str) -> bool:
        """Whether one of them has bound the pod. Raises ExtenderFailed."""
        for extender in self._extenders:
            if extender.settings.bind_verb and extender.is_interested(pod):
                await extender.bind(pod, node)
                return True
        return False

    def _preempting(self, pod: Obj) -> "list[Extender]":
        return [
            extender
            for extender in self._extenders
            if extender.settings.preempt_verb and extender.is_interested(pod)
        ]


def _passed_over(one: "Extender", error: ExtenderFailed) -> None:
    """Raises it again where the extender must be heard."""
    if not one.settings.ignorable:
        raise error
    log.warning("ignorable extender failed, skipped", extender=one.name, error=error)
