"""One step of a StatefulSet: what is done to its pods and claims now.

Job: gather what single pods need; say which pods can be made after their claims. Pure.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.controllers.actions import Action, Outcome, Record
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Creation:
    """A pod that is missing, with the claims that are missing for it."""

    pod: Obj
    claims: Sequence[Action] = ()


@dataclass(frozen=True, slots=True)
class Step:
    actions: Sequence[Action] = ()  # claims that were lost, labels and owners that were changed
    creations: Sequence[Creation] = ()
    deletions: Sequence[Obj] = ()
    events: Sequence[Record] = ()
    waits: bool = False  # for something that nothing will tell of
    blocks: bool = False  # nothing further may be done before this is over

    def is_empty(self) -> bool:
        return not (self.actions or self.creations or self.deletions)

    def with_(self, other: "Step") -> "Step":
        return Step(
            (*self.actions, *other.actions),
            (*self.creations, *other.creations),
            (*self.deletions, *other.deletions),
            (*self.events, *other.events),
            self.waits or other.waits,
            self.blocks or other.blocks,
        )

    def ready(self, outcomes: Sequence[Outcome]) -> list[Creation]:
        """Those whose claims were all made."""
        done = {id(outcome.action) for outcome in outcomes if outcome.error is None}
        return [item for item in self.creations if all(id(made) in done for made in item.claims)]
