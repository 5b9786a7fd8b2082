"""The pods and claims of a StatefulSet: each with a number, a name and a disk of its own.

Job: what pod and claims of an ordinal look like; which ordinal a pod has; who owns a claim. Pure.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, copy_of, labels_of, meta_of, name_of, namespace_of, uid_of
from sampan.api.resources import PODS, STATEFUL_SETS
from sampan.api.rules import pods as pod_facts
from sampan.controllers.workloads.pod_control import controller_reference, pod_from_template
from sampan.controllers.workloads.revisions import HASH

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def ordinal_of(owner: Obj, pod: Obj) -> int:
    """The number in the pod's name; -1 where the pod is not named after the set."""
    prefix, _, number = name_of(pod).rpartition("-")
    return int(number) if prefix == name_of(owner) and number.isdigit() else -1


def new_pod(owner: Obj, revision: Obj, ordinal: int) -> Obj:
    template = copy_of((revision.get("data") or {}).get("spec", {}).get("template") or {})
    template.pop("$patch", None)
    pod = pod_from_template(template, owner, controller_reference(STATEFUL_SETS, owner))
    name = f"{name_of(owner)}-{ordinal}"
    meta = pod["metadata"]
    del meta["generateName"]
    meta["name"] = name
    meta["labels"] = {
        **meta.get("labels", {}),
        POD_NAME: name,
        POD_INDEX: str(ordinal),
        HASH: name_of(revision),
    }
    spec = pod["spec"]
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    _add_volumes(owner, spec, ordinal)
    return pod


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
                "spec": copy_of(template.get("spec") or {}),
            }
        )
    return claims


def claim_name(owner: Obj, template: Obj, ordinal: int) -> str:
    return f"{name_of(template)}-{name_of(owner)}-{ordinal}"


def claim_owners(owner: Obj, claim: Obj, pod: Obj | None, condemned: bool) -> list[Obj]:
    """The claim's ownerReferences by the retention policy: it goes with the set, with its pod when
    the set shrinks, or not at all. References of others stay."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    references: Sequence[Obj] = meta_of(claim).get("ownerReferences") or ()
    kept = [reference for reference in references if not _is_ours(owner, reference)]
    with_set = policy.get("whenDeleted") == "Delete"
    with_pod = policy.get("whenScaled") == "Delete" and condemned
    if with_pod and pod is not None:
        wanted = _reference("v1", PODS.kind, pod)
        return [*kept, wanted]
    if with_set:
        return [*kept, _reference(STATEFUL_SETS.api_version, STATEFUL_SETS.kind, owner)]
    return kept


def is_running_and_ready(pod: Obj) -> bool:
    return pod_facts.phase(pod) == "Running" and pod_facts.is_ready(pod)


def revision_of_pod(pod: Obj) -> str:
    return labels_of(pod).get(HASH, "")


def _is_ours(owner: Obj, reference: Obj) -> bool:
    if reference.get("uid") == uid_of(owner):
        return True
    prefix, _, number = str(reference.get("name", "")).rpartition("-")
    return reference.get("kind") == PODS.kind and prefix == name_of(owner) and number.isdigit()


def _reference(api_version: str, kind: str, obj: Obj) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "name": name_of(obj), "uid": uid_of(obj)}


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
