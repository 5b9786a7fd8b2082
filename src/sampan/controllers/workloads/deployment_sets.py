"""The ReplicaSets of a Deployment: which is the new one, what it looks like, which are old enough.

Job: template → set, with its hash, its revision and the Deployment's annotations. Pure.
Invariant: a template has one set: whoever differs only in the hash label is the same.
"""

from collections.abc import Sequence

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
)
from sampan.api.resources import DEPLOYMENTS, REPLICA_SETS
from sampan.controllers.workloads.pod_control import controller_reference
from sampan.controllers.workloads.rollout import replicas_of, size_annotations, status_count
from sampan.controllers.workloads.template_hash import template_hash
from sampan.core.digits import is_digits

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
_PREFIX = "deployment.kubernetes.io/"
# Annotations of the Deployment that its sets do not get.
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        f"{_PREFIX}desired-replicas",
        f"{_PREFIX}max-replicas",
        "deprecated.deployment.rollback.to",
    }
)


def find_new_set(deployment: Obj, sets: Sequence[Obj]) -> Obj | None:
    """The oldest set that has the Deployment's template, whatever its hash."""
    wanted = deployment["spec"].get("template") or {}
    return next((item for item in sets if _same_template(item, wanted)), None)


def new_replica_set(deployment: Obj, old_sets: Sequence[Obj], size: int) -> Obj:
    collisions = (deployment.get("status") or {}).get("collisionCount")
    template = deployment["spec"].get("template") or {}
    word = template_hash(template, collisions)
    labels = {**labels_of(template), HASH_LABEL: word}
    selector = deployment["spec"].get("selector") or {}
    matching = {**(selector.get("matchLabels") or {}), HASH_LABEL: word}
    annotations = new_set_annotations(deployment, None, old_sets)
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{name_of(deployment)}-{word}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "annotations": {**annotations, **size_annotations(deployment)},
            "ownerReferences": [controller_reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": deployment["spec"].get("minReadySeconds", 0),
            "selector": {**selector, "matchLabels": matching},
            "template": {**template, "metadata": {**meta_of(template), "labels": labels}},
        },
    }


def new_set_annotations(
    deployment: Obj, new_set: Obj | None, old_sets: Sequence[Obj]
) -> dict[str, str]:
    """The Deployment's annotations and the set's revision, with the revisions it had before."""
    known = annotations_of(new_set) if new_set is not None else {}
    copied = {k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED}
    annotations = {**known, **copied}
    newest = max((_revision(item) for item in old_sets), default=0) + 1
    current = known.get(REVISION)
    if current is None or (is_digits(current) and int(current) < newest):
        annotations[REVISION] = str(newest)
        if current is not None:  # rolled back to: it served under another number before
            history = [part for part in known.get(HISTORY, "").split(",") if part]
            annotations[HISTORY] = ",".join([*history, current])
    return annotations


def surplus_sets(deployment: Obj, old_sets: Sequence[Obj]) -> list[Obj]:
    """The oldest idle sets beyond revisionHistoryLimit."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None:
        return []
    living = [item for item in old_sets if not is_deleted(item)]
    surplus = max(0, len(living) - int(limit))
    ordered = sorted(living, key=lambda item: (_revision(item), *by_age(item)))
    return [item for item in ordered[:surplus] if _is_idle(item)]


def by_age(obj: Obj) -> tuple[str, str]:
    return str(meta_of(obj).get("creationTimestamp") or ""), name_of(obj)


def _same_template(replica_set: Obj, wanted: Obj) -> bool:
    template = replica_set["spec"].get("template") or {}
    return template.get("spec") == wanted.get("spec") and _bare(template) == _bare(wanted)


def _bare(template: Obj) -> Obj:
    """Its metadata without the hash, and without what is empty."""
    meta = dict(meta_of(template))
    labels = {k: v for k, v in (meta.pop("labels", None) or {}).items() if k != HASH_LABEL}
    meta.pop("creationTimestamp", None)
    return {"labels": labels, **{field: value for field, value in meta.items() if value}}


def _is_idle(replica_set: Obj) -> bool:
    observed = status_count(replica_set, "observedGeneration")
    return (
        replicas_of(replica_set) == 0
        and status_count(replica_set, "replicas") == 0
        and meta_of(replica_set).get("generation", 0) <= observed
    )


def _revision(replica_set: Obj) -> int:
    text = annotations_of(replica_set).get(REVISION, "")
    return int(text) if is_digits(text) else 0
