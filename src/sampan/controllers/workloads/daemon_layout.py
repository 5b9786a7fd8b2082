"""The nodes as a DaemonSet sees them: where its pods may run, may stay, and are.

Job: nodes and pods of one set, put together; what each of its pods is good for. Pure.
Invariant: a template is read once, not once per node: it may have thousands of terms.
"""

from collections.abc import Iterator, Mapping, Sequence

from sampan.api.objects import Obj, is_deleted, labels_of, name_of
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.node_selectors import Wanted, wanted_of
from sampan.api.rules.tolerations import (
    NO_EXECUTE,
    Toleration,
    keeps_away,
    taints_of,
    tolerations_of,
)
from sampan.client.by_identity import OF_ANY_SIZE, by_identity
from sampan.controllers.workloads.daemon_pods import daemon_tolerations, target_node
from sampan.controllers.workloads.pod_control import available_at
from sampan.controllers.workloads.revisions import HASH
from sampan.core.fast_dataclass import dataclass

# By node: whether a new pod may go there, and whether one that is there may stay.
Judged = Mapping[str, tuple[bool, bool]]
PER_TURN = 10_000  # terms and tolerations, looked at before others have the loop


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
    owner: Obj, nodes: Sequence[Obj], pods: Sequence[Obj], word: str, now: float, judged: Judged
) -> Layout:
    """`judged`: of nodes that were looked at already."""
    by_node: dict[str, list[Obj]] = {}
    for pod in pods:
        by_node.setdefault(target_node(pod), []).append(pod)
    probe = probe_of(owner)
    places: list[Place] = []
    for node in nodes:
        name = name_of(node)
        run, stay = judged.get(name) or may_run(probe, node)
        places.append(Place(node, run, stay, by_node.pop(name, [])))
    strays = [pod for pods in by_node.values() for pod in pods]
    return Layout(owner, word, places, strays, now)


@dataclass(frozen=True, slots=True)
class Probe:
    """A pod of the set, as far as it matters where it may run."""

    node_name: str
    wanted: Wanted
    tolerations: Sequence[Toleration]

    @property
    def weight(self) -> int:
        """How much there is to look at for one node."""
        return 1 + len(self.wanted.terms or ()) + len(self.tolerations)


def probe_of(owner: Obj) -> Probe:
    return _probe(owner["spec"]["template"])


@by_identity(8, OF_ANY_SIZE)
def _probe(template: Obj) -> Probe:
    spec = {**(template.get("spec") or {}), "tolerations": daemon_tolerations(template)}
    pod = {"metadata": {}, "spec": spec}
    return Probe(spec.get("nodeName") or "", wanted_of(pod), tolerations_of(pod))


def may_run(probe: Probe, node: Obj) -> tuple[bool, bool]:
    """Whether a new pod may go there, and whether one that is there may stay."""
    name = name_of(node)
    if probe.node_name not in ("", name) or not probe.wanted.may_run_on(name, labels_of(node)):
        return False, False
    taints = taints_of(node)
    stays = not keeps_away(probe.tolerations, taints, (NO_EXECUTE,))
    return not keeps_away(probe.tolerations, taints), stays


def judged_in_turns(owner: Obj, nodes: Sequence[Obj]) -> Iterator[Judged]:
    """Of all nodes, a turn's worth after the other."""
    probe, turn, looked_at = probe_of(owner), dict[str, tuple[bool, bool]](), 0
    for node in nodes:
        turn[name_of(node)] = may_run(probe, node)
        looked_at += probe.weight
        if looked_at >= PER_TURN:
            yield turn
            turn, looked_at = {}, 0
    yield turn


def has_ended_and_goes(pod: Obj) -> bool:
    return is_deleted(pod) and pod_facts.is_terminal(pod)
