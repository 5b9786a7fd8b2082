"""How long kubelets may keep what they read: the annotation node.alpha.kubernetes.io/ttl.

Job: the annotation of every node by how many nodes there are; upstream's steps.
Invariant: a step is taken back later than it was made, so that a cluster at its edge stays put.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, annotations_of, key_of, name_of, uid_of
from sampan.api.resources import NODES
from sampan.controllers.actions import NOTHING, Patch, Plan
from sampan.controllers.controller import Caches, Controller, View
from sampan.core.fast_dataclass import dataclass

ANNOTATION = "node.alpha.kubernetes.io/ttl"


@dataclass(frozen=True, slots=True)
class Step:
    least: float  # nodes
    most: float
    ttl_seconds: int


STEPS = (
    Step(0, 100, 0), Step(90, 500, 15), Step(450, 1000, 30), Step(900, 2000, 60),
    Step(1800, float("inf"), 300),
)  # fmt: skip


def next_step(step: int, count: int) -> int:
    """From the step that held before."""
    while count > STEPS[step].most:
        step += 1
    while count < STEPS[step].least:
        step -= 1
    return step


def plan(node: Obj, ttl_seconds: int) -> Plan:
    if annotations_of(node).get(ANNOTATION) == str(ttl_seconds):
        return NOTHING
    meta = {"uid": uid_of(node), "annotations": {ANNOTATION: str(ttl_seconds)}}
    return Plan([Patch(NODES, "", name_of(node), {"metadata": meta})])


def ttl_controller() -> Controller:
    step = 0

    def desired(count: int) -> int:
        nonlocal step
        step = next_step(step, count)
        return STEPS[step].ttl_seconds

    def wake(caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
        if new is None:
            return ()
        said = annotations_of(new).get(ANNOTATION)
        return () if said == str(desired(len(caches(NODES)))) else (key_of(new),)

    async def planned(view: View, key: str) -> Plan:
        nodes = view.cache(NODES)
        node = nodes.get(key)
        return NOTHING if node is None else plan(node, desired(len(nodes)))

    return Controller(
        name="ttl-controller",
        component="ttl-controller",
        aliases=("ttl",),
        wakes={NODES: wake},
        planned=planned,
        workers=1,
    )
