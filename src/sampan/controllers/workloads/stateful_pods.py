"""The pods and claims of a StatefulSet: each with a number, a name and a disk of its own.

Job: what pod and claims of an ordinal look like; which ordinal a pod has. Pure.
"""

from collections.abc import Container
from itertools import islice

from sampan.api.objects import Obj, labels_of, meta_of, name_of, namespace_of
from sampan.api.resources import STATEFUL_SETS
from sampan.api.rules import pods as pod_facts
from sampan.controllers.workloads.pod_control import controller_reference, pod_from_template
from sampan.controllers.workloads.revisions import HASH
from sampan.core.digits import number_up_to

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_MOST = 2**31 - 1


def ordinal_of(owner: Obj, pod: Obj) -> int:
    """The number in the pod's name; -1 where the pod is not named after the set."""
    prefix, _, text = name_of(pod).rpartition("-")
    number = number_up_to(_MOST, text) if prefix == name_of(owner) else None
    return -1 if number is None else number


def first_missing(taken: Container[int], start: int, count: int, most: int) -> list[int]:
    """Of `count` numbers from `start` on those that are not taken, at most so many. It costs what
    is taken and what is answered."""
    numbers = range(start, start + count)
    return list(islice((number for number in numbers if number not in taken), most))


def new_pod(owner: Obj, revision: Obj, ordinal: int) -> Obj:
    template = (revision.get("data") or {}).get("spec", {}).get("template") or {}
    pod = pod_from_template(template, owner, controller_reference(STATEFUL_SETS, owner))
    name = f"{name_of(owner)}-{ordinal}"
    meta = pod["metadata"]
    meta["name"] = name
    identity = identity_labels(owner, ordinal)
    meta["labels"] = {**meta.get("labels", {}), **identity, HASH: name_of(revision)}
    spec = pod["spec"]
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    _add_volumes(owner, spec, ordinal)
    return pod


def identity_labels(owner: Obj, ordinal: int) -> dict[str, str]:
    return {POD_NAME: f"{name_of(owner)}-{ordinal}", POD_INDEX: str(ordinal)}


def has_identity(pod: Obj) -> bool:
    """Services for one pod select it by its name."""
    return labels_of(pod).get(POD_NAME) == name_of(pod)


def claims_for(owner: Obj, ordinal: int) -> list[Obj]:
    selector = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
    claims: list[Obj] = []
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        meta = {
            **{k: v for k, v in meta_of(template).items() if k in ("labels", "annotations")},
            "name": claim_name(owner, template, ordinal),
            "namespace": namespace_of(owner),
        }
        meta["labels"] = {**labels_of(template), **selector}
        claims.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": meta,
                "spec": template.get("spec") or {},
            }
        )
    return claims


def claim_names(owner: Obj, ordinal: int) -> list[str]:
    templates = owner["spec"].get("volumeClaimTemplates") or ()
    return [claim_name(owner, template, ordinal) for template in templates]


def claim_name(owner: Obj, template: Obj, ordinal: int) -> str:
    return f"{name_of(template)}-{name_of(owner)}-{ordinal}"


def is_running_and_ready(pod: Obj) -> bool:
    return pod_facts.phase(pod) == "Running" and pod_facts.is_ready(pod)


def revision_of_pod(pod: Obj) -> str:
    return labels_of(pod).get(HASH, "")


def _add_volumes(owner: Obj, spec: Obj, ordinal: int) -> None:
    templates = owner["spec"].get("volumeClaimTemplates") or ()
    names = {name_of(template) for template in templates}
    others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in names]
    mine = [
        {
            "name": name_of(template),
            "persistentVolumeClaim": {
                "claimName": claim_name(owner, template, ordinal),
                "readOnly": False,
            },
        }
        for template in templates
    ]
    if others or mine:
        spec["volumes"] = [*mine, *others]
