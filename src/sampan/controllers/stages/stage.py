"""Stages: how objects of a kind move on by themselves, as KWOK's `kwok.x-k8s.io/v1alpha1` says it.

Job: a manifest → a Stage; which of several Stages an object is in, and how long it stays. Pure.
Invariant: a field, function or expression that is not understood is refused when it is read.
Invariant: one Stage of those that match is drawn by weight; where none has any, each is as likely.
"""

import random
from collections.abc import Mapping, Sequence

from sampan.api.cel.program import Program
from sampan.api.go_template.execution import Template
from sampan.api.objects import Obj, annotations_of, labels_of
from sampan.controllers.stages.expressions import (
    Expression,
    Requirement,
    is_so,
    seconds_from,
    weight_from,
)
from sampan.core.fast_dataclass import dataclass

API_VERSION, KIND = "kwok.x-k8s.io/v1alpha1", "Stage"


@dataclass(frozen=True, slots=True)
class StageEvent:
    """Of the object, in the name of the stage controller."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Finalizers:
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Patched:
    """The object itself."""

    template: Template
    root: str = ""  # the field that the template is of
    type: str = ""  # json, merge, strategic; empty: as the kind has it
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """Another object."""

    template: Template
    type: str = "apply"  # merge, strategic: where it is there already
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Deleted:
    pass


Step = StageEvent | Finalizers | Patched | Applied | Deleted


@dataclass(frozen=True, slots=True)
class Selector:
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    requirements: Sequence[Requirement]
    conditions: Sequence[Program]

    def matches(self, obj: Obj) -> bool:
        return (
            self.labels.items() <= labels_of(obj).items()
            and self.annotations.items() <= annotations_of(obj).items()
            and all(each.matches(obj) for each in self.requirements)
            and all(is_so(each, obj) for each in self.conditions)
        )


@dataclass(frozen=True, slots=True)
class Delay:
    seconds: float = 0.0
    seconds_from: Expression | None = None
    most_seconds: float | None = None  # drawn between both; None: no draw
    most_from: Expression | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    api_version: str  # of the objects that it is of
    kind: str
    selector: Selector | None  # None: of none
    steps: Sequence[Step]
    weight: int = 0
    weight_from: Expression | None = None
    delay: Delay = Delay()


def chosen(stages: Sequence[Stage], obj: Obj, rng: random.Random) -> Stage | None:
    """The one that comes next, of those that are of the object's kind."""
    fitting = [each for each in stages if each.selector and each.selector.matches(obj)]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    weights = [_weight(each, obj) for each in fitting]
    if any(weights):
        return rng.choices(fitting, weights)[0]
    return rng.choice(fitting)


def stays_seconds(stage: Stage, obj: Obj, now: float, rng: random.Random) -> float:
    """How long the object waits before the steps; never less than no time."""
    delay = stage.delay
    found = seconds_from(delay.seconds_from, obj, now)
    least = delay.seconds if found is None else found
    found = seconds_from(delay.most_from, obj, now)
    most = delay.most_seconds if found is None else found
    if most is None:
        return max(0.0, least)
    return max(0.0, most if most <= least else rng.uniform(least, most))


def finalizer_operations(present: Sequence[str], wanted: Finalizers) -> list[Obj]:
    """A JSON patch; empty where nothing is to be changed."""
    kept = [] if wanted.empty else [each for each in present if each not in wanted.remove]
    after = [*kept, *(each for each in wanted.add if each not in kept)]
    if after == list(present):
        return []
    if not after:
        return [{"op": "remove", "path": "/metadata/finalizers"}]
    return [{"op": "add", "path": "/metadata/finalizers", "value": after}]


def _weight(stage: Stage, obj: Obj) -> int:
    found = weight_from(stage.weight_from, obj)
    return max(0, stage.weight if found is None else found)
