"""Pods of a DaemonSet: affinity to one node, and the tolerations of daemons.

Job: a pod for a node; for which node a pod is meant, before and after it was bound. Pure.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.api.rules import pods as pod_facts
from sampan.client.by_identity import OF_ANY_SIZE, by_identity
from sampan.controllers.workloads.pod_control import pod_from_template
from sampan.controllers.workloads.revisions import HASH

_PREFIX = "node.kubernetes.io/"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def new_pod(owner: Obj, reference: Obj, node_name: str, word: str) -> Obj:
    pod = pod_from_template(owner["spec"]["template"], owner, reference)
    labels = {**pod["metadata"].get("labels", {}), HASH: word}
    generation = (owner["metadata"].get("annotations") or {}).get(
        "deprecated.daemonset.template.generation"
    )
    if generation:
        labels["pod-template-generation"] = generation
    pod["metadata"]["labels"] = labels
    spec = {**pod["spec"], "tolerations": daemon_tolerations(owner["spec"]["template"])}
    pod["spec"] = _for_node(spec, node_name)
    return pod


@by_identity(8, OF_ANY_SIZE)
def daemon_tolerations(template: Obj) -> list[Obj]:
    """A daemon runs where others may not: on nodes that are unready or short of something."""
    spec = template.get("spec") or {}
    tolerations: list[Obj] = list(spec.get("tolerations") or [])
    wanted = [*_TOLERATED]
    if spec.get("hostNetwork"):
        wanted.append(("network-unavailable", "NoSchedule"))
    for key, effect in wanted:
        wanted_one = {"key": f"{_PREFIX}{key}", "operator": "Exists", "effect": effect}
        tolerations = _with_toleration(tolerations, wanted_one)
    return tolerations


def _with_toleration(tolerations: Sequence[Obj], wanted: Obj) -> list[Obj]:
    """In place of those that are alike but for how long they last."""
    key = wanted["key"]  # of thousands, few are of the node's conditions
    alike = [item for item in tolerations if item.get("key") == key]
    alike = [item for item in alike if _without_end(item) == wanted]
    if not alike:
        return [*tolerations, wanted]
    return [wanted if item in alike else item for item in tolerations]


def _without_end(toleration: Obj) -> Obj:
    return {key: item for key, item in toleration.items() if item and key != "tolerationSeconds"}


def target_node(pod: Obj) -> str:
    """The node that the pod is bound to, or meant for."""
    bound = pod_facts.node_name(pod)
    if bound:
        return bound
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def _for_node(spec: Obj, node_name: str) -> Obj:
    """Required to run on this node; the template's own required terms were judged already."""
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    affinity = spec.get("affinity") or {}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}
