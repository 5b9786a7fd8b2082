"""What the scheduler knows of one pod: the only place that looks inside it.

Job: Pod object → PodInfo. Pure.
Invariant: two pods with equal shapes are placed by the same rules in the same way.
"""

from collections.abc import Collection
from dataclasses import replace

from sampan.api.objects import Obj, key_of, labels_of, namespace_of, uid_of
from sampan.api.rules.node_agent.declared_features import needed_to_run
from sampan.api.rules.node_selectors import (
    Requirements,
    Term,
    label_requirements,
    required_terms,
    term_of,
)
from sampan.api.rules.pods import priority
from sampan.api.rules.tolerations import Toleration, tolerations_of
from sampan.client.by_identity import by_identity
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.model.device_needs import NO_DEVICES, DeviceNeeds, needs_of
from sampan.scheduler.model.disks import Disk, disks_of
from sampan.scheduler.model.pod_terms import NO_DEMANDS, PodDemands, demands_of
from sampan.scheduler.model.pod_weight import is_long
from sampan.scheduler.model.requests import Usage, usage_of
from sampan.scheduler.model.volumes import OwnClaim, claims_of, own_claims_of
from sampan.scheduler.model.workloads import NO_OWNER, Owner, owner_of

DEFAULT_SCHEDULER = "default-scheduler"
# As they are written: pods of a cache share what is alike.


@dataclass(frozen=True, slots=True)
class PodShape:
    """Everything about a pod that bears on where it may run."""

    usage: Usage
    node_name: str
    selector: Requirements
    required: tuple[Term, ...] | None  # None = no requirement at all
    preferred: tuple[tuple[int, Term], ...]
    tolerations: tuple[Toleration, ...]
    images: tuple[str, ...]
    namespace: str
    labels: tuple[tuple[str, str], ...]
    demands: PodDemands  # of other pods
    claims: tuple[str, ...]  # keys of PersistentVolumeClaims
    owner: Owner = NO_OWNER
    devices: DeviceNeeds = NO_DEVICES
    disks: tuple[Disk, ...] = ()  # of kinds that two pods must not share
    features: tuple[str, ...] = ()  # of the node agent, that a node must declare
    own_claims: tuple[OwnClaim, ...] = ()  # of those, the ones that must be made for it
    is_long: bool = False  # so much is asked that it is worked out beside the loop


@dataclass(frozen=True, slots=True)
class PodInfo:
    uid: str
    key: str
    priority: int
    gates: tuple[str, ...]
    may_preempt: bool
    shape: PodShape
    scheduler: str = DEFAULT_SCHEDULER
    order: tuple[float, ...] | None = None  # of a plugin's; else by priority
    nominated: str = ""  # the node that was cleared for it


def pod_info_of(pod: Obj) -> PodInfo:
    spec = pod.get("spec") or {}
    return PodInfo(
        uid=uid_of(pod),
        key=key_of(pod),
        priority=priority(pod),
        gates=tuple(gate.get("name") or "" for gate in spec.get("schedulingGates") or ()),
        may_preempt=spec.get("preemptionPolicy") != "Never",
        shape=_shape(pod),
        scheduler=scheduler_of(pod),
        nominated=nominated_of(pod),
    )


def scheduler_of(pod: Obj) -> str:
    return (pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER


def nominated_of(pod: Obj) -> str:
    return (pod.get("status") or {}).get("nominatedNodeName") or ""


def without(row: PodInfo, resources: Collection[str]) -> PodInfo:
    """The pod, were it to request none of these."""
    usage = row.shape.usage
    requests = tuple(pair for pair in usage.requests if pair[0] not in resources)
    return replace(row, shape=replace(row.shape, usage=replace(usage, requests=requests)))


def summary_of(row: PodInfo) -> PodInfo:
    """Of a pod that is long, for who remembers many: without what it asks for."""
    usage, asks = Usage((), 0, 0), row.shape
    nothing = PodShape(
        usage, asks.node_name, Requirements(), None, (), (), (), asks.namespace, (), NO_DEMANDS, (),
        is_long=asks.is_long,
    )  # fmt: skip
    return replace(row, shape=nothing)


def image_name(name: str) -> str:
    """With its tag, as nodes report it."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


@by_identity(64)
def _tolerations(written: list[Obj]) -> tuple[Toleration, ...]:
    """Nearly every pod has the two that admission gives it."""
    return tolerations_of({"spec": {"tolerations": written}})


def _shape(pod: Obj) -> PodShape:
    spec = pod.get("spec") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    tolerations = spec.get("tolerations")
    return PodShape(
        usage=usage_of(pod),
        node_name=spec.get("nodeName") or "",
        selector=label_requirements(spec.get("nodeSelector") or {}),
        required=required_terms(pod),
        preferred=tuple(
            (int(item["weight"]), term_of(item.get("preference") or {}))
            for item in preferred
            if item.get("weight")
        ),
        tolerations=_tolerations(tolerations) if tolerations else (),
        images=tuple(image_name(container.get("image") or "") for container in containers),
        namespace=namespace_of(pod),
        labels=tuple(sorted(labels_of(pod).items())),
        demands=demands_of(pod),
        claims=claims_of(pod),
        owner=owner_of(pod),
        devices=needs_of(pod),
        disks=disks_of(pod),
        features=needed_to_run(spec),
        own_claims=own_claims_of(pod),
        is_long=is_long(pod),
    )
