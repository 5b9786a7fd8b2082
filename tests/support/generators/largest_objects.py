"""Objects in which every number is as large as its type allows, whatever validation says.

Job: an object of each kind that a controller or the scheduler plans with, and the numbers filled in
    where its schema knows of any: a plan must not walk over them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sampan.api.objects import Obj, copy_of
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.published import Schema
from sampan.core.fast_dataclass import dataclass
from tests.support.workload_lives.manifests import (
    budget,
    claim_template,
    cron_job,
    daemon_set,
    deployment,
    job,
    made,
    pod,
    replica_set,
    replication_controller,
    service,
    stateful_set,
)

INT32, INT64 = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Extreme:
    """What stands wherever the schema has a number, a number or percentage, or a time."""

    int32: int
    int64: int
    int_or_string: int | str
    time: str = ""  # empty: none are filled in


LARGEST = Extreme(INT32, INT64, INT32)
OTHER_EXTREMES = {
    "smallest": Extreme(-INT32 - 1, -INT64 - 1, -INT32 - 1),
    "percent": Extreme(1, 1, f"{INT32}%"),
    "negative percent": Extreme(1, 1, "-50%"),
    "first day": Extreme(INT32, INT64, 1, "0001-01-01T00:00:00Z"),
    "last day": Extreme(INT32, INT64, 1, "9999-12-31T23:59:59Z"),
}
NAMESPACE = "default"
LONG_AGO = "2020-01-01T00:00:00Z"
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
_METRIC = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization"}},
}
_POLICY = {"type": "Pods"}
_FAILURES = {
    "rules": [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}},
        {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
}
_DEVICES = {
    "requests": [
        {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount"}},
        {
            "name": "f",
            "firstAvailable": [
                {"name": "s", "deviceClassName": "c", "allocationMode": "ExactCount"}
            ],
        },
    ]
}


def largest_objects(schema: Schema, extreme: Extreme = LARGEST) -> Iterator[Obj]:
    for number, written in enumerate(_objects()):
        kept = filled(schema, written, extreme)
        kept["metadata"] |= {"name": f"o{number}", "uid": f"uid-{number}", "resourceVersion": "1"}
        kept["metadata"].pop("deletionTimestamp", None)
        kept["metadata"]["creationTimestamp"] = extreme.time or LONG_AGO
        kept["metadata"].setdefault("namespace", NAMESPACE)
        yield kept


def filled(schema: Schema, obj: Obj, extreme: Extreme = LARGEST) -> Obj:
    """Every number that the schema has at a place that the object has."""
    kind = schema.type_of(obj["apiVersion"], obj["kind"])
    assert kind is not None
    found: Obj = _filled(schema, kind, copy_of(obj), extreme)
    return found


def _filled(schema: Schema, kind: Type, value: Any, extreme: Extreme) -> Any:
    if isinstance(value, list) and kind.element is not None:
        return [_filled(schema, kind.element, item, extreme) for item in value]
    if kind.shape == "map" and kind.element is not None and isinstance(value, Mapping):
        return {key: _filled(schema, kind.element, item, extreme) for key, item in value.items()}
    if kind.shape == "object" and isinstance(value, Mapping):
        fields = schema.fields_of(kind.name)
        kept = {key: _filled(schema, fields[key], item, extreme) for key, item in value.items()}
        numbers = {key: most for key, one in fields.items() if (most := _extreme(one, extreme))}
        return kept | numbers
    return value


def _extreme(kind: Type, extreme: Extreme) -> int | str:
    """0 or empty: there is nothing to fill in."""
    match kind.format:
        case "int-or-string":
            return extreme.int_or_string
        case "date-time" | "micro-time":
            return extreme.time
    if kind.shape != "integer":
        return 0
    return extreme.int32 if kind.format == "int32" else extreme.int64


def _objects() -> Iterator[Obj]:
    for written in (*_workloads(), *_others()):
        yield {"status": {}, **written} if written["kind"] not in _WITHOUT_STATUS else written


def _workloads() -> Iterator[Obj]:
    success = {"rules": [{"succeededIndexes": f"0-{INT32}"}]}
    indexed: Obj = {"completionMode": "Indexed"}
    yield job()
    yield job(**indexed, successPolicy=success)
    yield job(**indexed, podFailurePolicy=_FAILURES)
    yield job(**indexed) | {
        "status": {"completedIndexes": f"1-{INT32}", "failedIndexes": "0", "startTime": LONG_AGO}
    }
    yield job(podReplacementPolicy="Failed", podFailurePolicy=_FAILURES)
    yield cron_job(concurrencyPolicy="Forbid", job={"completionMode": "Indexed"})
    for kind in ("Recreate", "RollingUpdate"):
        rolling: Obj = {"rollingUpdate": {}} if kind == "RollingUpdate" else {}
        yield deployment(strategy={"type": kind, **rolling})
    yield replica_set()
    yield replication_controller()
    for order in ("OrderedReady", "Parallel"):
        for claims in ([], [claim_template()]):
            yield stateful_set(
                podManagementPolicy=order, volumeClaimTemplates=claims, ordinals={},
                updateStrategy={"type": "RollingUpdate", "rollingUpdate": {}},
                persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"},
            )  # fmt: skip
    yield daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {}})
    yield budget()


def _others() -> Iterator[Obj]:
    behaviour = {"scaleUp": {"policies": [_POLICY]}, "scaleDown": {"policies": [_POLICY]}}
    yield made(
        "autoscaling/v2", "HorizontalPodAutoscaler", "h",
        {"scaleTargetRef": _TARGET, "metrics": [_METRIC], "behavior": behaviour},
    )  # fmt: skip
    spread = [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]
    claims = [{"name": "r", "resourceClaimName": "c"}]
    yield pod(topologySpreadConstraints=spread, resourceClaims=claims, securityContext={})
    yield service(externalTrafficPolicy="Local", sessionAffinityConfig={"clientIP": {}})
    yield made("v1", "Node", "n", {"podCIDR": "10.0.0.0/24"}) | {
        "status": {"nodeInfo": {"swap": {}}, "images": [{"names": ["x"]}]}
    }
    endpoint = {"addresses": ["10.0.0.1"], "conditions": {"ready": True}}
    yield made(
        "discovery.k8s.io/v1", "EndpointSlice", "e", None,
        addressType="IPv4", endpoints=[endpoint], ports=[{"name": "h"}],
    )  # fmt: skip
    subset = {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "h"}]}
    yield made("v1", "Endpoints", "e", None, subsets=[subset])
    yield made("resource.k8s.io/v1", "ResourceClaim", "c", {"devices": _DEVICES})
    template = {"spec": {"spec": {"devices": _DEVICES}}}
    yield made("resource.k8s.io/v1", "ResourceClaimTemplate", "c", template["spec"])
    yield made(
        "resource.k8s.io/v1", "ResourceSlice", "c",
        {"driver": "d", "pool": {"name": "p"}, "allNodes": True, "devices": [{"name": "x"}]},
    )  # fmt: skip
    yield made(
        "certificates.k8s.io/v1", "CertificateSigningRequest", "c",
        {"request": "", "signerName": "example.com/x", "usages": []},
    )  # fmt: skip
    yield made("coordination.k8s.io/v1", "Lease", "n", {"holderIdentity": "n"})
    yield made("storage.k8s.io/v1", "CSINode", "n", {"drivers": [_DRIVER]})
    hard = {"hard": {"pods": str(INT64), "requests.cpu": f"{INT64}E"}}
    yield made("v1", "ResourceQuota", "q", hard)
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9e18"}}}
    yield made("v1", "PersistentVolumeClaim", "v", wants)
    has = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "9e18"}, "iscsi": _ISCSI}
    yield made("v1", "PersistentVolume", "v", has)
    yield made("v1", "Secret", "s", None, type="kubernetes.io/service-account-token")
    yield made("v1", "Namespace", NAMESPACE, {})


_DRIVER = {"name": "d", "nodeID": "n", "allocatable": {}}
_ISCSI = {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:s"}
_WITHOUT_STATUS = frozenset({
    "EndpointSlice", "Endpoints", "ResourceClaimTemplate", "ResourceSlice", "Lease", "CSINode",
    "Secret",
})  # fmt: skip
