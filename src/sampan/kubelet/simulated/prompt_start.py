"""What a simulated pod is as soon as it starts, where nothing can hold it up.

Job: is there nothing that its start would wait for, look up or fail at? Its sandbox and its
    containers, running. Pure.
Invariant: what is made here is what the steps of kubelet/pods/perform.py make of the same pod, one
    call of the runtime after the other.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sampan.api.objects import Obj, labels_of, name_of, namespace_of, spec_of, uid_of
from sampan.api.rules.pods import containers, is_static
from sampan.client.by_identity import by_identity_and
from sampan.kubelet.container_spec.generate import container_annotations, pod_labels
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, SandboxStatus
from sampan.kubelet.pods.planning.crash_backoff import STREAK_ANNOTATION
from sampan.kubelet.simulated.parts import shared_notes
from sampan.kubelet.simulated.script import PREFIX

# Fields that nobody looks up anything for, and that no simulated start can fail at.
_PLAIN_SPEC = frozenset({
    "affinity", "automountServiceAccountToken", "containers", "dnsPolicy", "enableServiceLinks",
    "nodeName", "nodeSelector", "preemptionPolicy", "priority", "priorityClassName",
    "readinessGates", "restartPolicy", "schedulerName", "securityContext", "serviceAccount",
    "serviceAccountName", "terminationGracePeriodSeconds", "tolerations",
    "topologySpreadConstraints",
})  # fmt: skip
_PLAIN_CONTAINER = frozenset({
    "args", "command", "image", "imagePullPolicy", "livenessProbe", "name", "ports",
    "readinessProbe", "resizePolicy", "resources", "startupProbe", "terminationMessagePath",
    "terminationMessagePolicy", "workingDir",
})  # fmt: skip


def needs_nothing(pod: Obj, notes: Mapping[str, str]) -> bool:
    """`notes`: its annotations, with those of the scenario."""
    spec = spec_of(pod)
    return (
        spec.keys() <= _PLAIN_SPEC
        and not spec.get("securityContext")
        and all(container.keys() <= _PLAIN_CONTAINER for container in containers(pod))
        and not any(note.startswith(PREFIX) for note in notes)
        and not is_static(pod)
    )


def sandbox_of(
    pod: Obj, sandbox_id: str, ips: tuple[str, ...], now: float, notes: Mapping[str, str]
) -> SandboxStatus:
    return SandboxStatus(
        id=sandbox_id,
        name=name_of(pod),
        namespace=namespace_of(pod),
        uid=uid_of(pod),
        attempt=0,
        ready=True,
        created_at=now,
        ips=ips,
        labels=labels_of(pod) | pod_labels(pod),
        annotations=notes,
    )


class Ids(NamedTuple):
    container: str
    image: str


def container_of(
    pod: Obj, container: Obj, ids: Ids, sandbox: SandboxStatus, log_root: str
) -> ContainerStatus:
    name: str = container["name"]
    return ContainerStatus(
        id=ids.container,
        sandbox_id=sandbox.id,
        name=name,
        attempt=0,
        state=ContainerState.RUNNING,
        image=container.get("image", ""),
        image_id=ids.image,
        created_at=sandbox.created_at,
        started_at=sandbox.created_at,
        log_path=f"{log_root}/{namespace_of(pod)}_{name_of(pod)}_{uid_of(pod)}/{name}/0.log",
        labels={**pod_labels(pod), "io.kubernetes.container.name": name},
        annotations=_annotations(pod, container),
    )


def _annotations(pod: Obj, container: Obj) -> Mapping[str, str]:
    return _first_annotations(container, spec_of(pod).get("terminationGracePeriodSeconds"))


@by_identity_and(256)
def _first_annotations(container: Obj, grace_seconds: int | None) -> Mapping[str, str]:
    """The same for all that are made of one template, on all nodes: of a pod that nobody has
    deleted yet, nothing else is in there."""
    pod: Obj = {"spec": {"terminationGracePeriodSeconds": grace_seconds}}
    notes = {**container_annotations(pod, container, 0), STREAK_ANNOTATION: "0"}
    return shared_notes(notes)
