"""Defaults of the kinds that make pods: apps, and the replication controller.

Job: fill in counts, strategies and templates, as upstream does.
Invariant: a percentage stays a percentage.
"""

from sampan.api import features
from sampan.api.defaults.fill import fill, part_of, spec_of
from sampan.api.defaults.persistent_volumes import default_claim_spec
from sampan.api.defaults.pod import default_pod_template
from sampan.api.objects import Obj, copy_of


def default_replica_set(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(spec, replicas=1)
    default_pod_template(part_of(spec, "template"))


def default_replication_controller(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(spec, replicas=1)
    template = spec.get("template")
    if template is not None:  # here it may be missing; with the others it is at worst empty
        default_pod_template(template)
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if not labels:
        return
    if not spec.get("selector"):
        spec["selector"] = copy_of(labels)
    meta = obj.setdefault("metadata", {})
    if not meta.get("labels"):
        meta["labels"] = copy_of(labels)


def default_deployment(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    default_pod_template(part_of(spec, "template"))
    _default_rolling_update(spec, "strategy", maxUnavailable="25%", maxSurge="25%")


def default_stateful_set(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(spec, replicas=1, revisionHistoryLimit=10)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    default_pod_template(part_of(spec, "template"))
    strategy = spec.get("updateStrategy")
    if strategy is None:
        strategy = spec["updateStrategy"] = {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        if strategy.get("rollingUpdate") is None:
            strategy["rollingUpdate"] = {}
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        fill(rolling, partition=0)
        if features.enabled("MaxUnavailableStatefulSet"):
            fill(rolling, maxUnavailable=1)
    policy = spec.get("persistentVolumeClaimRetentionPolicy")
    if policy is None:
        policy = spec["persistentVolumeClaimRetentionPolicy"] = {}
    for key in ("whenDeleted", "whenScaled"):
        if not policy.get(key):
            policy[key] = "Retain"
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        default_claim_spec(claim)


def default_daemon_set(obj: Obj) -> None:
    spec = spec_of(obj)
    # A field that lives on as an annotation: whoever writes the object writes it too.
    meta = part_of(obj, "metadata")
    annotations = meta.get("annotations")
    if annotations is None:
        annotations = meta["annotations"] = {}
    annotations.setdefault("deprecated.daemonset.template.generation", "0")
    fill(spec, revisionHistoryLimit=10)
    default_pod_template(part_of(spec, "template"))
    _default_rolling_update(spec, "updateStrategy", maxUnavailable=1, maxSurge=0)


def _default_rolling_update(spec: Obj, field: str, **bounds: object) -> None:
    strategy = spec.get(field)
    if strategy is None:
        strategy = spec[field] = {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        if strategy.get("rollingUpdate") is None:
            strategy["rollingUpdate"] = {}
        fill(strategy["rollingUpdate"], **bounds)


def default_template_object(obj: Obj) -> None:
    default_pod_template(part_of(obj, "template"))
