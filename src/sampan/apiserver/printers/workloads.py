"""Table rows of workloads: replica sets, deployments, jobs and their like.

Job: cells of the apps, batch, autoscaling and policy kinds. Pure.
"""

from typing import Any

from sampan.api.objects import (
    Obj,
    controller_of,
    is_deleted,
    name_of,
    seconds_of,
    spec_of,
    status_of,
)
from sampan.api.rules.conditions import is_true
from sampan.api.rules.durations import human_duration
from sampan.apiserver.printers.layout import (
    AGE,
    CREATED,
    NAME,
    NAMED,
    NONE,
    UNKNOWN,
    UNSET,
    WORKLOAD,
    Column,
    Printer,
    age,
    bool_text,
    boolean,
    columns,
    containers_and_images,
    integer,
    labels_text,
    selector_text,
    since,
    template_spec,
    wide,
)

_MOST_METRICS = 2
_METRIC_SOURCES = {
    "External": "external", "Pods": "pods", "Object": "object", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip


def _replicas(obj: Obj, *fields: str) -> list[int]:
    status = status_of(obj)
    return [spec_of(obj).get("replicas") or 0, *(status.get(field) or 0 for field in fields)]


def _workload(obj: Obj) -> list[str]:
    selector = selector_text(spec_of(obj).get("selector"))
    return [*containers_and_images(template_spec(obj)), selector]


def _replica_set(obj: Obj, now: float) -> list[Any]:
    counts = _replicas(obj, "replicas", "readyReplicas")
    return [name_of(obj), *counts, age(obj, now), *_workload(obj)]


def _replication_controller(obj: Obj, now: float) -> list[Any]:
    counts = _replicas(obj, "replicas", "readyReplicas")
    named = containers_and_images(template_spec(obj))
    selector = labels_text(spec_of(obj).get("selector"))
    return [name_of(obj), *counts, age(obj, now), *named, selector]


def _deployment(obj: Obj, now: float) -> list[Any]:
    wanted, ready, updated, available = _replicas(
        obj, "readyReplicas", "updatedReplicas", "availableReplicas"
    )
    counts = [f"{ready}/{wanted}", updated, available]
    return [name_of(obj), *counts, age(obj, now), *_workload(obj)]


def _stateful_set(obj: Obj, now: float) -> list[Any]:
    wanted, ready = _replicas(obj, "readyReplicas")
    named = containers_and_images(template_spec(obj))
    return [name_of(obj), f"{ready}/{wanted}", age(obj, now), *named]


def _daemon_set(obj: Obj, now: float) -> list[Any]:
    status = status_of(obj)
    counted = (
        "desiredNumberScheduled", "currentNumberScheduled", "numberReady",
        "updatedNumberScheduled", "numberAvailable",
    )  # fmt: skip
    counts = [status.get(field) or 0 for field in counted]
    nodes = labels_text(template_spec(obj).get("nodeSelector"))
    return [name_of(obj), *counts, nodes, age(obj, now), *_workload(obj)]


def _controller_revision(obj: Obj, now: float) -> list[Any]:
    owner, shown = controller_of(obj), NONE
    if owner is not None:
        group = (owner.get("apiVersion") or "").rpartition("/")[0]
        kind = f"{owner.get('kind')}.{group}" if group else str(owner.get("kind"))
        shown = f"{kind.lower()}/{owner.get('name')}"
    return [name_of(obj), shown, obj.get("revision") or 0, age(obj, now)]


def _job(obj: Obj, now: float) -> list[Any]:
    return [
        name_of(obj), _job_word(obj), _completions(obj), _job_duration(obj, now), age(obj, now),
        *_workload(obj),
    ]  # fmt: skip


def _job_word(obj: Obj) -> str:
    for kind in ("Complete", "Failed"):
        if is_true(obj, kind):
            return kind
    if is_deleted(obj):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(obj, kind):
            return kind
    return "Running"


def _completions(obj: Obj) -> str:
    spec, succeeded = spec_of(obj), status_of(obj).get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Obj, now: float) -> str:
    status = status_of(obj)
    if not status.get("startTime"):
        return ""
    end = status.get("completionTime")
    return human_duration((seconds_of(end) if end else now) - seconds_of(status["startTime"]))


def _cron_job(obj: Obj, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    last = status.get("lastScheduleTime")
    return [
        name_of(obj), spec.get("schedule") or "", spec.get("timeZone") or NONE,
        bool_text(spec.get("suspend")), len(status.get("active") or ()),
        since(last, now) if last else NONE, age(obj, now),
        *containers_and_images((job.get("template") or {}).get("spec") or {}),
        selector_text(job.get("selector")),
    ]  # fmt: skip


def _autoscaler(obj: Obj, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        name_of(obj), f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        UNSET if least is None else str(least), spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0, age(obj, now),
    ]  # fmt: skip


def _metrics(specs: Any, statuses: Any) -> str:
    if not specs:
        return NONE
    texts = [
        _metric(spec, statuses[index] if index < len(statuses) else {})
        for index, spec in enumerate(specs)
    ]
    shown = ", ".join(texts[:_MOST_METRICS])
    more = len(texts) - _MOST_METRICS
    return f"{shown} + {more} more..." if more > 0 else shown


def _metric(metric: Obj, status: Obj) -> str:
    source = _METRIC_SOURCES.get(metric.get("type") or "")
    if source is None:
        return "<unknown type>"
    spec = metric.get(source) or {}
    target, current = spec.get("target") or {}, (status.get(source) or {}).get("current") or {}
    by_name = source in ("resource", "containerResource")
    if target.get("averageValue") is not None:
        text = f"{current.get('averageValue') or UNKNOWN}/{target['averageValue']}"
        average = "" if by_name or source == "pods" else " (avg)"
    elif by_name:
        text = f"{_percent(current, UNKNOWN)}/{_percent(target, '<auto>')}"
        average = ""
    else:
        text, average = f"{current.get('value') or UNKNOWN}/{target.get('value') or '0'}", ""
    return f"{spec.get('name')}: {text}" if by_name else text + average


def _percent(values: Obj, missing: str) -> str:
    number = values.get("averageUtilization")
    return missing if number is None else f"{number}%"


def _disruption_budget(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    limits = [spec.get("minAvailable"), spec.get("maxUnavailable")]
    shown = ["N/A" if limit is None else str(limit) for limit in limits]
    return [name_of(obj), *shown, status_of(obj).get("disruptionsAllowed") or 0, age(obj, now)]


def _scale(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), *_replicas(obj, "replicas"), age(obj, now)]


_COUNTED = (NAME, integer("Desired"), integer("Current"), integer("Ready"))

REPLICA_SETS = Printer((*_COUNTED, AGE, *WORKLOAD), _replica_set)
REPLICATION_CONTROLLERS = Printer((*_COUNTED, AGE, *WORKLOAD), _replication_controller)
DEPLOYMENTS = Printer(
    (*columns(NAME, "Ready", "Up-to-date", "Available", AGE), *WORKLOAD), _deployment
)
STATEFUL_SETS = Printer(
    (*columns(NAME, "Ready", AGE), *wide("Containers", "Images")), _stateful_set
)
DAEMON_SETS = Printer(
    (*_COUNTED, integer("Up-to-date"), integer("Available"), *columns("Node Selector", AGE),
     *WORKLOAD),
    _daemon_set,
)  # fmt: skip
CONTROLLER_REVISIONS = Printer(columns(NAME, "Controller", "Revision", AGE), _controller_revision)
JOBS = Printer((*columns(NAME, "Status", "Completions", "Duration", AGE), *WORKLOAD), _job)
CRON_JOBS = Printer(
    (*columns(NAME, "Schedule", "Timezone", boolean("Suspend"), integer("Active"), "Last Schedule",
              AGE),
     *WORKLOAD),
    _cron_job,
)  # fmt: skip
AUTOSCALERS = Printer(
    columns(NAME, "Reference", "Targets", "MinPods", "MaxPods", "Replicas", AGE), _autoscaler
)
DISRUPTION_BUDGETS = Printer(
    columns(NAME, "Min Available", "Max Unavailable", integer("Allowed Disruptions"), AGE),
    _disruption_budget,
)
SCALES = Printer(
    columns(Column("Name", description=NAMED), integer("Desired"), integer("Available"), AGE),
    _scale,
)
CUSTOM_SCALES = Printer(
    (
        NAME,
        Column("Desired", "integer", description="Number of desired replicas"),
        Column("Available", "integer", description="Number of actual replicas"),
        Column("Age", "date", description=CREATED),
    ),
    _scale,
)
