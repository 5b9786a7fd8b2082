"""The nodes as a DaemonSet sees them: where its pods may run, may stay, and are.

Job: nodes and pods of one set, put together; what each of its pods is good for. Pure.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, is_deleted, labels_of, name_of
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.node_selectors import may_run_on
from sampan.api.rules.tolerations import NO_EXECUTE, keeps_away, taints_of, tolerations_of
from sampan.controllers.workloads.daemon_pods import target_node, with_tolerations
from sampan.controllers.workloads.pod_control import available_at
from sampan.controllers.workloads.revisions import HASH
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """One node, as the set sees it."""

    node: Obj
    should_run: bool
    should_continue: bool
    pods: Sequence[Obj]  # of this set, meant for this node

    @property
    def name(self) -> str:
        return name_of(self.node)


@dataclass(frozen=True, slots=True)
class Layout:
    owner: Obj
    word: str
    places: Sequence[Place]
    strays: Sequence[Obj]  # pods for nodes that do not exist
    now: float

    def is_current(self, pod: Obj) -> bool:
        return labels_of(pod).get(HASH) == self.word

    def serves(self, pod: Obj) -> bool:
        """Ready for long enough, be it on its way out."""
        moment = available_at(pod, int(self.owner["spec"].get("minReadySeconds") or 0))
        return moment is not None and moment <= self.now

    def is_available(self, pod: Obj) -> bool:
        return self.serves(pod) and not is_deleted(pod)

    def rolls(self) -> bool:
        strategy = self.owner["spec"].get("updateStrategy") or {}
        return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")

    def busy_places(self) -> list[Place]:
        """Where a pod should run, or one is."""
        return [
            place
            for place in self.places
            if place.should_run or not all(map(has_ended_and_goes, place.pods))
        ]


def layout_of(
    owner: Obj, nodes: Sequence[Obj], pods: Sequence[Obj], word: str, now: float
) -> Layout:
    by_node: dict[str, list[Obj]] = {}
    for pod in pods:
        by_node.setdefault(target_node(pod), []).append(pod)
    probe = probe_of(owner)
    places: list[Place] = []
    for node in nodes:
        run, stay = may_run(probe, node)
        places.append(Place(node, run, stay, by_node.pop(name_of(node), [])))
    strays = [pod for pods in by_node.values() for pod in pods]
    return Layout(owner, word, places, strays, now)


def probe_of(owner: Obj) -> Obj:
    """A pod of the set, as far as it matters where it may run."""
    return {"metadata": {}, "spec": with_tolerations(owner["spec"]["template"].get("spec") or {})}


def may_run(probe: Obj, node: Obj) -> tuple[bool, bool]:
    """Whether a new pod may go there, and whether one that is there may stay."""
    wanted = (probe["spec"].get("nodeName") or name_of(node)) == name_of(node)
    if not wanted or not may_run_on(probe, name_of(node), labels_of(node)):
        return False, False
    tolerations, taints = tolerations_of(probe), taints_of(node)
    stays = not keeps_away(tolerations, taints, (NO_EXECUTE,))
    return not keeps_away(tolerations, taints), stays


def has_ended_and_goes(pod: Obj) -> bool:
    return is_deleted(pod) and pod_facts.is_terminal(pod)
