"""Table rows of nodes, namespaces, events and small core kinds.

Job: cells of the core, coordination, scheduling and node kinds. Pure.
"""

from typing import Any

from sampan.api.objects import Obj, labels_of, name_of, spec_of, status_of
from sampan.api.rules.conditions import condition_of, find
from sampan.apiserver.printers.layout import (
    AGE,
    NAME,
    NAMED,
    NONE,
    UNKNOWN,
    Column,
    Printer,
    age,
    boolean,
    columns,
    integer,
    since,
    wide,
)

_ROLE_PREFIX, _ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


def _node(obj: Obj, now: float) -> list[Any]:
    info = status_of(obj).get("nodeInfo") or {}
    facts = ("osImage", "kernelVersion", "containerRuntimeVersion")
    return [
        name_of(obj), _node_word(obj), ",".join(_roles(obj)) or NONE, age(obj, now),
        info.get("kubeletVersion") or "", _address(obj, "InternalIP"), _address(obj, "ExternalIP"),
        *(info.get(fact) or UNKNOWN for fact in facts),
    ]  # fmt: skip


def _node_word(obj: Obj) -> str:
    ready = condition_of(obj, "Ready")
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if spec_of(obj).get("unschedulable") else word


def _roles(obj: Obj) -> list[str]:
    labels = labels_of(obj)
    named = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((named | {labels.get(_ROLE_LABEL) or ""}) - {""})


def _address(obj: Obj, kind: str) -> str:
    for address in status_of(obj).get("addresses") or ():
        if address.get("type") == kind:
            return str(address.get("address"))
    return NONE


def _namespace(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), status_of(obj).get("phase") or "", age(obj, now)]


def _event(obj: Obj, now: float) -> list[Any]:
    """Core events and those of events.k8s.io, whose fields have other names."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    kind = (about.get("kind") or "").lower()
    first, last, count = _event_times(obj, now)
    return [
        last, obj.get("type") or "", obj.get("reason") or "",
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath") or "", _event_source(obj),
        (obj.get("message") or obj.get("note") or "").strip(), first, count, name_of(obj),
    ]  # fmt: skip


def _event_times(obj: Obj, now: float) -> tuple[str, str, int]:
    first_moment = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp")
    last_moment = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    first = since(first_moment or obj.get("eventTime"), now)
    series = obj.get("series")
    if series is not None:
        return first, since(series.get("lastObservedTime"), now), series.get("count") or 0
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    return first, since(last_moment, now) if last_moment else first, count


def _event_source(obj: Obj) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    reporter = obj.get("reportingComponent") or obj.get("reportingController") or ""
    component = source.get("component") or reporter
    host = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def _secret(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), obj.get("type") or "", len(obj.get("data") or ()), age(obj, now)]


def _config_map(obj: Obj, now: float) -> list[Any]:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [name_of(obj), count, age(obj, now)]


def _service_account(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), len(obj.get("secrets") or ()), age(obj, now)]


def _component_status(obj: Obj, now: float) -> list[Any]:
    word, message, error = "Unknown", "", ""
    condition = find(obj.get("conditions") or (), "Healthy")
    if condition is not None:
        word = "Healthy" if condition.get("status") == "True" else "Unhealthy"
        message, error = condition.get("message") or "", condition.get("error") or ""
        error = "" if error == "nil" else error
    return [name_of(obj), word, message, error]


def _resource_quota(obj: Obj, now: float) -> list[Any]:
    status = status_of(obj)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    texts = {key: f"{key}: {used.get(key) or '0'}/{hard[key]}" for key in sorted(hard)}
    limits = [text for key, text in texts.items() if key.startswith("limits.")]
    requests = [text for key, text in texts.items() if not key.startswith("limits.")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


def _lease(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), spec_of(obj).get("holderIdentity") or "", age(obj, now)]


def _priority_class(obj: Obj, now: float) -> list[Any]:
    head = [name_of(obj), obj.get("value") or 0, bool(obj.get("globalDefault"))]
    return [*head, age(obj, now), obj.get("preemptionPolicy") or ""]


def _runtime_class(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), obj.get("handler") or "", age(obj, now)]


NODES = Printer(
    (*columns(NAME, "Status", "Roles", AGE, "Version"),
     *wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")),
    _node,
)  # fmt: skip
NAMESPACES = Printer(columns(NAME, "Status", AGE), _namespace)
EVENTS = Printer(
    (*columns("Last Seen", "Type", "Reason", "Object"), *wide("Subobject", "Source"),
     Column("Message"), *wide("First Seen", "Count"), Column("Name", "string", "name", 1, NAMED)),
    _event,
)  # fmt: skip
SECRETS = Printer(columns(NAME, "Type", "Data", AGE), _secret)
CONFIG_MAPS = Printer(columns(NAME, "Data", AGE), _config_map)
SERVICE_ACCOUNTS = Printer(columns(NAME, "Secrets", AGE), _service_account)
COMPONENT_STATUSES = Printer(columns(NAME, "Status", "Message", "Error"), _component_status)
RESOURCE_QUOTAS = Printer(columns(NAME, "Request", "Limit", AGE), _resource_quota)
LEASES = Printer(columns(NAME, "Holder", AGE), _lease)
PRIORITY_CLASSES = Printer(
    columns(NAME, integer("Value"), boolean("Global-Default"), AGE, "PreemptionPolicy"),
    _priority_class,
)
RUNTIME_CLASSES = Printer(columns(NAME, "Handler", AGE), _runtime_class)
