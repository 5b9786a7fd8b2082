"""Which aspects of an object a change touches, and what of it a function looks at.

Job: compare two states of an object once, so that only those are asked whom the change may concern.
    Pure.
Invariant: a function that says what it looks at finds nothing new in a change that touches none of
    it; one that says nothing is asked about every change.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

# Plain numbers, of which one change has the sum.
CAME = 1
WENT = 2
DELETION = 4  # that it was asked for, for when, and the finalizers that it waits for
LABELS = 8
OWNERS = 16
NODE = 32  # spec.nodeName
SPEC = 64  # anything else of the spec
PHASE = 128  # status.phase
STATUS = 256  # anything else of the status
OTHER = 512  # in every change: annotations, managed fields, data, rules …
EXISTENCE = CAME | WENT
ANYTHING = 2 * OTHER - 1
OFFERED = CAME | LABELS | OWNERS  # somebody else may have what has no controller than before

_DELETION_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds", "finalizers")
NO_CONTROLLER = ""
ANOTHER = "*"  # controllers that nobody asks for; it is the name of no kind
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Interest:
    """`controller`: only in what a controller of this kind has; of what nobody has, `orphans`."""

    aspects: int = ANYTHING
    controller: str = ANOTHER
    orphans: int = 0

    def is_met(self, touched: int, controller: str | None) -> bool:
        """`controller`: the kind of the one that has the object; None: that is changing."""
        if self.controller in (ANOTHER, controller) or controller is None:
            return bool(touched & self.aspects)
        return controller == NO_CONTROLLER and bool(touched & self.orphans)


_IN_ANYTHING = Interest()


def looks_at(aspects: int, *, controller: str = ANOTHER, orphans: int = 0) -> Callable[[F], F]:
    """Of an index, a tally or a listener: what of an object its answer depends on."""

    def tell(function: F) -> F:
        vars(function)["interest"] = Interest(aspects, controller, orphans)
        return function

    return tell


def interest_of(function: Callable[..., Any]) -> Interest:
    found = getattr(function, "interest", _IN_ANYTHING)
    assert isinstance(found, Interest)
    return found


def touched(old: Obj | None, new: Obj | None) -> int:
    """Of two states of one object; None: it is not there yet, or no more."""
    if old is None:
        return CAME | OTHER
    if new is None:
        return WENT | OTHER
    found = OTHER
    was, now = old["metadata"], new["metadata"]
    if was.get("labels") != now.get("labels"):
        found |= LABELS
    if was.get("ownerReferences") != now.get("ownerReferences"):
        found |= OWNERS
    for name in _DELETION_FIELDS:
        if was.get(name) != now.get(name):
            found |= DELETION
    # Two states in one process share what is equal: to compare them is to compare identities.
    before, after = old.get("spec"), new.get("spec")
    if before is not after and before != after:
        found |= _apart(before, after, "nodeName", NODE, SPEC)
    before, after = old.get("status"), new.get("status")
    if before is not after and before != after:
        found |= _apart(before, after, "phase", PHASE, STATUS)
    return found


def controller_kind(touches: int, old: Obj | None, new: Obj | None) -> str | None:
    """Of the one that has the object: NO_CONTROLLER where nobody has it, None where the change may
    have given it to another one."""
    if touches & OWNERS:
        return None
    obj = new if new is not None else old
    assert obj is not None
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("kind") or ANOTHER)
    return NO_CONTROLLER


def _apart(before: Any, after: Any, name: str, of_the_field: int, of_the_rest: int) -> int:
    """Which of two unequal parts differ: in the field, in the rest, or in both."""
    before, after = before or {}, after or {}
    if not isinstance(before, dict) or not isinstance(after, dict):
        return of_the_field | of_the_rest  # of a custom kind, it may be anything
    found = of_the_field if before.get(name) != after.get(name) else 0
    return found | (of_the_rest if {**before, name: 0} != {**after, name: 0} else 0)
