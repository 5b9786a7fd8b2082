"""The flow schemas and priority levels that every cluster has. Pure.

Job: upstream's mandatory and suggested objects, as objects.
"""

from sampan.api.objects import Obj, copy_of, time_text
from sampan.api.resources import Resource, by_kind
from sampan.api.validation.cluster.flow_control import CATCH_ALL_LEVEL, MANDATORY_SCHEMAS
from sampan.core.fast_dataclass import dataclass

GROUP = "flowcontrol.apiserver.k8s.io"
MANDATORY = frozenset(MANDATORY_SCHEMAS)
_AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"


def _row(kind: str) -> Resource:
    found = by_kind(f"{GROUP}/v1", kind)
    assert found is not None, kind
    return found


SCHEMAS, LEVELS = _row("FlowSchema"), _row("PriorityLevelConfiguration")

# name → (shares, lendable percent, queues, hand size)
_LIMITED = {
    "system": (30, 33, 64, 6),
    "node-high": (40, 25, 64, 6),
    "leader-election": (10, 0, 16, 4),
    "workload-high": (40, 50, 128, 6),
    "workload-low": (100, 90, 128, 6),
    "global-default": (20, 50, 128, 6),
}
_LEASES = ("coordination.k8s.io", "leases", "create get update")


def flow_objects(now: float) -> list[tuple[Resource, Obj]]:
    """Fresh: the caller's to change."""
    levels = [_limited_level(name, *row) for name, row in _LIMITED.items()]
    levels.append(_level("exempt", {"type": "Exempt", "exempt": _shares(0, 0)}))
    levels.append(_level("catch-all", copy_of(CATCH_ALL_LEVEL)))
    specs = {**copy_of(MANDATORY_SCHEMAS), **{row.name: _spec(row) for row in _rows()}}
    return [
        *((LEVELS, level) for level in levels),
        *((SCHEMAS, _schema(name, spec, time_text(now))) for name, spec in specs.items()),
    ]


def reconcile(found: Obj, wanted: Obj) -> Obj | None:
    """As upstream: mandatory ones are put right, suggested ones unless their annotation says no;
    None: nothing to do."""
    name = found["metadata"]["name"]
    if name == "exempt" and (found.get("spec") or {}).get("exempt"):
        wanted = {**wanted, "spec": {**wanted["spec"], "exempt": found["spec"]["exempt"]}}
    auto = (found["metadata"].get("annotations") or {}).get(_AUTOUPDATE, "true") == "true"
    if found.get("spec") == wanted["spec"] or not (name in MANDATORY or auto):
        return None
    return {**found, "spec": wanted["spec"]}


def _meta(name: str) -> Obj:
    return {"name": name, "annotations": {_AUTOUPDATE: "true"}}


def _shares(shares: int, lendable: int) -> Obj:
    return {"nominalConcurrencyShares": shares, "lendablePercent": lendable}


def _level(name: str, spec: Obj) -> Obj:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": LEVELS.kind,
        "metadata": _meta(name),
        "spec": spec,
    }


def _limited_level(name: str, shares: int, lendable: int, queues: int, hand: int) -> Obj:
    queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": 50}
    response = {"type": "Queue", "queuing": queuing}
    limited = {**_shares(shares, lendable), "limitResponse": response}
    return _level(name, {"type": "Limited", "limited": limited})


def _rows() -> list["_Row"]:
    nodes, manager = _group("system:nodes"), _user("system:kube-controller-manager")
    scheduler, everything = _user("system:kube-scheduler"), _everything()
    system_accounts = _account("*")
    both = [_group("system:unauthenticated"), _group("system:authenticated")]
    endpoint_accounts = [
        _account(item) for item in ("endpoint-controller", "endpointslicemirroring-controller")
    ]
    rows: list[tuple[str, str, int, str, list[Obj], Obj]] = [
        ("probes", "exempt", 2, "", both, _paths("get", "/healthz /readyz /livez")),
        ("system-leader-election", "leader-election", 100, "ByUser", [manager, scheduler],
         _of(_LEASES)),
        ("endpoint-controller", "workload-high", 150, "ByUser", [manager, *endpoint_accounts],
         _of(("", "endpoints", "create get update"))),
        ("workload-leader-election", "leader-election", 200, "ByUser", [system_accounts],
         _of(_LEASES)),
        ("system-node-high", "node-high", 400, "ByUser", [nodes],
         _of(("", "nodes nodes/status", "*"), ("coordination.k8s.io", "leases", "*"))),
        ("system-nodes", "system", 500, "ByUser", [nodes], everything),
        ("kube-controller-manager", "workload-high", 800, "ByNamespace", [manager], everything),
        ("kube-scheduler", "workload-high", 800, "ByNamespace", [scheduler], everything),
        ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [system_accounts],
         everything),
        ("service-accounts", "workload-low", 9000, "ByUser", [_group("system:serviceaccounts")],
         everything),
        ("global-default", "global-default", 9900, "ByUser", both, everything),
    ]  # fmt: skip
    return [_Row(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    level: str
    precedence: int
    distinguisher: str
    subjects: list[Obj]
    rule: Obj


def _spec(row: _Row) -> Obj:
    spec: Obj = {
        "priorityLevelConfiguration": {"name": row.level},
        "matchingPrecedence": row.precedence,
        "rules": [{"subjects": row.subjects, **row.rule}],
    }
    if row.distinguisher:
        spec["distinguisherMethod"] = {"type": row.distinguisher}
    return spec


def _schema(name: str, spec: Obj, now: str) -> Obj:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": SCHEMAS.kind,
        "metadata": _meta(name),
        "spec": spec,
        "status": {"conditions": [dangling(level_of(spec), True, now)]},
    }


def level_of(spec: Obj) -> str:
    """The level that a schema's spec leads to."""
    return str((spec.get("priorityLevelConfiguration") or {}).get("name") or "")


def dangling(level: str, exists: bool, now: str) -> Obj:
    """What a schema says of its level."""
    which = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    return {
        "type": "Dangling",
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": f"{which} {'and it exists' if exists else 'but there is no such object'}",
        "lastTransitionTime": now,
    }


def _group(name: str) -> Obj:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Obj:
    return {"kind": "User", "user": {"name": name}}


def _account(name: str) -> Obj:
    account = {"namespace": "kube-system", "name": name}
    return {"kind": "ServiceAccount", "serviceAccount": account}


def _paths(verbs: str, urls: str) -> Obj:
    return {"nonResourceRules": [{"verbs": verbs.split(), "nonResourceURLs": urls.split()}]}


def _of(*rows: tuple[str, str, str]) -> Obj:
    return {
        "resourceRules": [
            {
                "verbs": verbs.split(),
                "apiGroups": [group],
                "resources": resources.split(),
                "namespaces": ["*"],
                "clusterScope": True,
            }
            for group, resources, verbs in rows
        ]
    }


def _everything() -> Obj:
    rule = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "namespaces": ["*"],
        "clusterScope": True,
    }
    return {
        "resourceRules": [rule],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
