"""All extenders of a scheduler, asked in their order.

Job: gather their say; pass over those that fail and may be passed over.
Invariant: each is asked only about what those before it left.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampan.api.objects import Obj, name_of
from sampan.core.log import get_logger
from sampan.scheduler.decision.plugin_verdicts import Answer, ExtenderFailed
from sampan.scheduler.preemption.victims import Candidate, narrowed

if TYPE_CHECKING:  # loaded where a configuration asks for one
    from sampan.scheduler.extenders.extender import Extender

log = get_logger(__name__)


class Extenders:
    def __init__(self, extenders: "Sequence[Extender]") -> None:
        self._extenders = tuple(extenders)
        # What the scheduler itself does not count: they do.
        self.resources = frozenset(
            name for one in self._extenders for name in one.settings.not_ours
        )

    def __bool__(self) -> bool:
        return bool(self._extenders)

    def concern(self, pod: Obj) -> bool:
        return any(one.is_interested(pod) for one in self._extenders)

    def weigh_victims_of(self, pod: Obj) -> bool:
        return bool(self._preempting(pod))

    async def answers(self, pod: Obj, nodes: list[Obj]) -> list[Answer]:
        """About nodes that are feasible otherwise. Raises ExtenderFailed."""
        found = []
        for one in self._extenders:
            if not nodes or not one.is_interested(pod):
                continue
            try:
                answer = await one.answer(pod, nodes)
            except ExtenderFailed as error:
                _passed_over(one, error)
                continue
            found.append(answer)
            if answer.allowed is not None:
                nodes = [node for node in nodes if name_of(node) in answer.allowed]
        return found

    async def left_of(self, pod: Obj, those: list[Candidate]) -> list[Candidate]:
        """The candidates that all would clear. Raises ExtenderFailed."""
        for one in self._preempting(pod):
            if those:
                try:
                    those = narrowed(those, await one.preempted(pod, those))
                except ExtenderFailed as error:
                    _passed_over(one, error)
        return those

    async def bound(self, pod: Obj, node: str) -> bool:
        """Whether one of them has bound the pod. Raises ExtenderFailed."""
        for one in self._extenders:
            if one.settings.bind_verb and one.is_interested(pod):
                await one.bind(pod, node)
                return True
        return False

    def _preempting(self, pod: Obj) -> "list[Extender]":
        return [
            one for one in self._extenders if one.settings.preempt_verb and one.is_interested(pod)
        ]


def _passed_over(one: "Extender", error: ExtenderFailed) -> None:
    """Raises it again where the extender must be heard."""
    if not one.settings.ignorable:
        raise error
    log.warning("an extender was passed over", extender=one.name, error=error)
