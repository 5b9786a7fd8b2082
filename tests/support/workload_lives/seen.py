"""What is seen of a life: objects and events without what is another's in another run.

Job: mask names, uids, times and addresses; say what of an object is compared.
"""

import re
from typing import Any

import orjson

from sampan.api.objects import Obj

_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(rf"-{_RANDOM}{{6,10}}-{_RANDOM}{{5}}\b"), "-HASH-RAND"),
    (re.compile(rf"-{_RANDOM}{{8,10}}\b"), "-HASH"),
    (re.compile(rf"-{_RANDOM}{{5}}\b"), "-RAND"),
    (re.compile(r"-2\d{7}\b"), "-MINUTE"),
    (re.compile(r" on node n\d\b"), " on node NODE"),
    (re.compile(r"10\.77\.\d+\.\d+"), "IP"),
    (re.compile(r"10\.(9[6-9]|1[01]\d)\.\d+\.\d+"), "CLUSTERIP"),
)
_UNSEEN = frozenset((
    "uid", "resourceVersion", "managedFields", "creationTimestamp", "selfLink",
    "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime", "time",
    "startTime", "completionTime",
    "pod-template-hash", "controller-revision-hash", "deletionTimestamp",
    "endpoints.kubernetes.io/last-change-trigger-time",
))  # fmt: skip
_MASKED = {
    "controller.kubernetes.io/hash": "HASH", "currentRevision": "REV", "updateRevision": "REV",
    "lastScheduleTime": "TIME", "lastSuccessfulTime": "TIME", "certificate": "PEM",
    "lastScaleTime": "TIME", "volume.kubernetes.io/selected-node": "NODE", "nodePort": "PORT",
    "healthCheckNodePort": "PORT",
}  # fmt: skip
_HASHED = ("pod-template-hash", "metadata.name")  # in expressions: hashes, names of nodes
_PLAYED = ("life", "stop", "kubectl.kubernetes.io/last-applied-configuration")
# Of whose spec more is compared than that it was stored: what controllers write into it.
_SPEC = {
    "persistentvolumeclaims": (
        "accessModes", "resources", "storageClassName", "volumeName", "volumeAttributesClassName",
    ),
    "persistentvolumes": ("claimRef", "persistentVolumeReclaimPolicy", "capacity"),
    "replicasets": ("replicas",),
    "deployments": ("replicas", "paused"),
    "statefulsets": ("replicas",),
    "services": ("type", "clusterIP", "ipFamilies", "ipFamilyPolicy", "externalTrafficPolicy"),
    "nodes": ("taints", "podCIDR", "unschedulable"),
    "namespaces": ("finalizers",),
    "jobs": ("suspend", "parallelism", "completions"),
    "resourceclaims": ("devices",),
    "certificatesigningrequests": ("username", "groups", "signerName", "usages"),
    "volumeattachments": ("attacher", "source"),
    "servicecidrs": ("cidrs",),
    "ipaddresses": ("parentRef",),
}  # fmt: skip


def masked(value: Any, key: str = "") -> Any:
    if key in _MASKED and value:
        return _MASKED[key]
    if isinstance(value, dict):
        if value.get("key") in _HASHED and value.get("values"):
            return {**value, "values": ["HASH"]}
        return {
            masked(name): masked(item, name)
            for name, item in sorted(value.items())
            if name not in _UNSEEN
        }
    if isinstance(value, list):
        return [masked(item) for item in value]
    if isinstance(value, str):
        for pattern, by in _MASKS:
            value = pattern.sub(by, value)
    return value


def summary(kind: str, obj: Obj) -> Obj:
    shown = masked(obj)
    meta = shown["metadata"]
    annotations = {
        name: text for name, text in meta.get("annotations", {}).items() if name not in _PLAYED
    }
    found: Obj = {
        "name": meta.get("name"),
        "generateName": meta.get("generateName"),
        "labels": meta.get("labels"),
        "annotations": annotations,
        "finalizers": meta.get("finalizers"),
        "deleting": obj["metadata"].get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in obj["metadata"]
        else None,
        "generation": meta.get("generation"),
        "owners": [_owner(reference) for reference in meta.get("ownerReferences") or ()],
        "spec": {
            field: shown["spec"][field]
            for field in _SPEC.get(kind, ())
            if field in (shown.get("spec") or {})
        },
        "status": shown.get("status"),
    }
    own = _OWN.get(kind)
    found |= own(shown) if own is not None else {}
    return {name: value for name, value in found.items() if value not in (None, {}, [], "")}


def _owner(reference: Obj) -> list[Any]:
    flags = ("controller", "blockOwnerDeletion")
    return [reference["kind"], reference["name"], *(reference.get(flag) for flag in flags)]


def _pod(pod: Obj) -> Obj:
    status = pod.get("status") or {}
    conditions = [
        {name: item[name] for name in ("type", "status", "reason", "message") if item.get(name)}
        for item in status.get("conditions") or ()
        if item["type"] in ("DisruptionTarget", "PodScheduled", "Ready")
    ]
    shown = {
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "message": status.get("message"),
        "conditions": sorted(conditions, key=lambda item: str(item["type"])),
        "nominated": bool(status.get("nominatedNodeName")) or None,
        "resourceClaimStatuses": status.get("resourceClaimStatuses"),
    }
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {
        "scheduled": bool(pod["spec"].get("nodeName")) or None,
        "generation": None,
        "spec": spec,
        "status": {name: value for name, value in shown.items() if value not in (None, [])},
    }


def _revision(revision: Obj) -> Obj:
    return {"name": "REV", "revision": revision.get("revision")}


def _slice(item: Obj) -> Obj:
    endpoints = [
        {name: one[name] for name in ("conditions", "hints", "hostname", "zone") if name in one}
        for one in item.get("endpoints") or ()
    ]
    return {
        "endpoints": sorted(endpoints, key=orjson.dumps),
        "ports": sorted(item.get("ports") or (), key=orjson.dumps),
        "addressType": item.get("addressType"),
        "generation": None,
    }


def _endpoints(item: Obj) -> Obj:
    subsets = [
        {
            "ports": sorted(subset.get("ports") or (), key=orjson.dumps),
            **{
                name: len(subset[name])
                for name in ("addresses", "notReadyAddresses")
                if name in subset
            },
        }
        for subset in item.get("subsets") or ()
    ]
    return {"subsets": sorted(subsets, key=orjson.dumps)}


def _secret(secret: Obj) -> Obj:
    return {"type": secret.get("type"), "data": sorted(secret.get("data") or {})}


def _config_map(item: Obj) -> Obj:
    return {"data": sorted(item.get("data") or {})}


def _cluster_role(item: Obj) -> Obj:
    return {"rules": item.get("rules")}


_OWN = {
    "clusterroles": _cluster_role,
    "pods": _pod,
    "controllerrevisions": _revision,
    "endpointslices": _slice,
    "endpoints": _endpoints,
    "secrets": _secret,
    "configmaps": _config_map,
}


_COMBINED = "(combined from similar events): "


def event_text(event: Obj) -> str:
    source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    about = event["involvedObject"]
    message = (event.get("message") or "").removeprefix(_COMBINED)
    words = [event["type"], about["kind"], event["reason"], message, source]
    return " | ".join(masked(words))


_DUMPED = re.compile(r"Invalid value: \{.*\}: ", re.DOTALL)  # a Go value, field by field


def answer_text(code: int, obj: Obj) -> str:
    """Of what was answered, where it was refused, the reason and the words."""
    if code < 400:
        return str(code)
    message = _DUMPED.sub("Invalid value: {…}: ", obj.get("message") or "")
    return f"{code} {obj.get('reason') or ''}: {masked(message)}"
