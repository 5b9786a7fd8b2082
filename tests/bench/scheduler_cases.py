"""What is scheduled in `make bench-scheduler`: nodes, and pods of six kinds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sampan.api.objects import Obj

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SMALL = {"cpu": "100m", "memory": "128Mi"}
LARGE = {"cpu": "3", "memory": "4Gi"}
TOO_LARGE = {"cpu": "64", "memory": "4Gi"}
_MATCHING = {"labelSelector": {"matchLabels": {"app": "bench"}}}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Case:
    name: str
    pod: Callable[[int], Obj]
    # How many pods fill each node beforehand.
    fill: int = 0
    preempts: bool = False

    def pods(self, count: int) -> list[Obj]:
        return [self.pod(number) for number in range(count)]

    def before(self, nodes: int) -> Iterator[tuple[str, Obj]]:
        for number in range(nodes * self.fill):
            name = f"node-{number % nodes}"
            yield (
                name,
                pod(number, LARGE, prefix="low", nodeName=name, terminationGracePeriodSeconds=0),
            )


def node(number: int) -> Obj:
    name = f"node-{number}"
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    labels = {HOST: name, ZONE: f"zone-{number % 3}", "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {}, "status": {"capacity": amounts, "allocatable": amounts},
    }  # fmt: skip


def pod(number: int, requests: dict[str, str], prefix: str = "pod", **spec: object) -> Obj:
    name = f"{prefix}-{number}"
    container = {
        "name": "c",
        "image": "registry.example/app:1",
        "resources": {"requests": requests},
    }
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "bench"}}
    filled = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": filled}


def _with_affinity(number: int) -> Obj:
    terms = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}]}
    ]
    return pod(number, SMALL, affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}})


def _spread(number: int) -> Obj:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        **_MATCHING,
    }
    return pod(number, SMALL, topologySpreadConstraints=[constraint])


def _apart(number: int) -> Obj:
    """In groups of a hundred, each pod of a group on a node of its own."""
    made = pod(number, SMALL)
    made["metadata"]["labels"]["group"] = group = f"g{number // 100}"
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"group": group}}}
    made["spec"]["affinity"] = {"podAntiAffinity": {_REQUIRED: [term]}}
    return made


def _mixed(number: int) -> Obj:
    return pod(number, SMALL if number % 5 else TOO_LARGE)


CASES = (
    Case("basic", lambda number: pod(number, SMALL)),
    Case("node affinity", _with_affinity),
    Case("spread over zones", _spread),
    Case("anti-affinity", _apart),
    Case("preemption", lambda number: pod(number, LARGE, priority=10), fill=5, preempts=True),
    Case("unschedulable mix", _mixed),
)
