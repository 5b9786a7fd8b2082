"""Table rows of RBAC, certificates, admission and flow control.

Job: cells of the rbac, certificates, admission, flow control and aggregation kinds. Pure.
"""

from typing import Any

from sampan.api.objects import Obj, meta_of, name_of, spec_of, status_of
from sampan.api.rules.conditions import condition_of, is_true
from sampan.api.rules.durations import human_duration
from sampan.apiserver.printers.layout import (
    AGE,
    CREATED,
    NAME,
    NONE,
    UNSET,
    Column,
    Printer,
    age,
    columns,
    integer,
    wide,
)

_VERDICTS = ("Issued", "Denied", "Failed")


def _binding(obj: Obj, now: float) -> list[Any]:
    role = obj.get("roleRef") or {}
    shown = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [name_of(obj), shown, age(obj, now), *_subjects(obj.get("subjects") or [])]


def _subjects(subjects: list[Obj]) -> list[str]:
    """Users, groups and service accounts."""
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        name, kind = subject.get("name") or "", subject.get("kind") or ""
        where = f"{subject.get('namespace') or ''}/" if kind == "ServiceAccount" else ""
        by_kind.setdefault(kind, []).append(where + name)
    return [", ".join(by_kind[kind]) for kind in ("User", "Group", "ServiceAccount")]


def _definition(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    names = spec.get("names") or {}
    served = [version for version in spec.get("versions") or () if version.get("served")]
    versions = [f"{one.get('name')}{'(storage)' * bool(one.get('storage'))}" for one in served]
    return [
        name_of(obj), spec.get("scope") or "", ",".join(sorted(versions)),
        meta_of(obj).get("creationTimestamp"), spec.get("group") or "", names.get("kind") or "",
        ",".join(names.get("shortNames") or ()), is_true(obj, "Established"),
    ]  # fmt: skip


def _signing_request(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    asked = spec.get("expirationSeconds")
    return [
        name_of(obj), age(obj, now), spec.get("signerName") or NONE, spec.get("username") or "",
        NONE if asked is None else human_duration(asked), _signing_word(obj),
    ]  # fmt: skip


def _signing_word(obj: Obj) -> str:
    status = status_of(obj)
    kinds = {condition.get("type") for condition in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    if "Failed" in kinds:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


def _trust_bundle(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), spec_of(obj).get("signerName") or NONE]


def _pod_certificate(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    kinds = [condition.get("type") for condition in status_of(obj).get("conditions") or ()]
    said = spec.get("unverifiedUserAnnotations") or {}
    return [
        name_of(obj), *(spec.get(key) or "" for key in ("podName", "serviceAccountName")),
        *(spec.get(key) or "" for key in ("nodeName", "signerName")),
        next((kind for kind in reversed(kinds) if kind in _VERDICTS), "Pending"),
        ",".join(f"{key}={said[key]}" for key in sorted(said)) or NONE,
    ]  # fmt: skip


def _webhooks(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def _policy(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    kind = spec.get("paramKind")
    shown = f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else UNSET
    said = spec.get("validations") or spec.get("mutations") or ()
    return [name_of(obj), len(said), shown, age(obj, now)]


def _policy_binding(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    given, shown = spec.get("paramRef"), UNSET
    if given:
        where = f"{given['namespace']}/" if given.get("namespace") else "*/"
        shown = where + (given.get("name") or "*")
    return [name_of(obj), spec.get("policyName") or "", shown, age(obj, now)]


def _flow_schema(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    dangling = condition_of(obj, "Dangling")
    return [
        name_of(obj), (spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        spec.get("matchingPrecedence") or 0,
        (spec.get("distinguisherMethod") or {}).get("type") or NONE, age(obj, now),
        "?" if dangling is None else dangling.get("status"),
    ]  # fmt: skip


def _priority_level(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    limited = spec.get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        name_of(obj), spec.get("type") or "", limited.get("nominalConcurrencyShares", NONE),
        *(queuing.get(field, NONE) for field in ("queues", "handSize", "queueLengthLimit")),
        age(obj, now),
    ]  # fmt: skip


def _api_service(obj: Obj, now: float) -> list[Any]:
    service = spec_of(obj).get("service")
    shown = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    available = condition_of(obj, "Available") or {"status": "Unknown"}
    word = available.get("status") or "Unknown"
    if word != "True" and available.get("reason"):
        word = f"{word} ({available['reason']})"
    return [name_of(obj), shown, word, age(obj, now)]


BINDINGS = Printer(
    (*columns(NAME, "Role", AGE), *wide("Users", "Groups", "ServiceAccounts")), _binding
)
SIGNING_REQUESTS = Printer(
    columns(NAME, AGE, "SignerName", "Requestor", "RequestedDuration", "Condition"),
    _signing_request,
)
TRUST_BUNDLES = Printer(columns(NAME, "SignerName"), _trust_bundle)
POD_CERTIFICATES = Printer(
    columns(NAME, "PodName", "ServiceAccountName", "NodeName", "SignerName", "State",
            "UnverifiedUserAnnotations"),
    _pod_certificate,
)  # fmt: skip
WEBHOOKS = Printer((NAME, integer("Webhooks"), AGE), _webhooks)
POLICIES = Printer(columns(NAME, integer("Validations"), "ParamKind", AGE), _policy)
MUTATING_POLICIES = Printer(columns(NAME, integer("Mutations"), "ParamKind", AGE), _policy)
POLICY_BINDINGS = Printer(columns(NAME, "PolicyName", "ParamRef", AGE), _policy_binding)
FLOW_SCHEMAS = Printer(
    columns(NAME, "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", AGE, "MissingPL"),
    _flow_schema,
)
PRIORITY_LEVELS = Printer(
    columns(NAME, "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit",
            AGE),
    _priority_level,
)  # fmt: skip
DEFINITIONS = Printer(
    (*columns(NAME, "Scope", "Versions", Column("Created At", "date", description=CREATED)),
     *wide("Group", "Kind", "ShortNames"), Column("Established", "boolean", priority=1)),
    _definition,
)  # fmt: skip
API_SERVICES = Printer(columns(NAME, "Service", "Available", AGE), _api_service)
