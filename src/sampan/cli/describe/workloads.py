"""Deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs, described.

Job: what each wants and has.
"""

from sampan.api.objects import Obj, controller_of, labels_of, seconds_of
from sampan.api.rules.durations import human_duration
from sampan.cli.describe.pod import template_lines
from sampan.cli.describe.writer import Writer, long_time, pairs_text, selector_text, truth

LONGEST_INDEXES = 50


def _template(writer: Writer, template: Obj) -> None:
    writer.line(0, "Pod Template:")
    template_lines(writer, template)


def deployment(writer: Writer, obj: Obj, sets: list[Obj]) -> None:
    """`sets` are its replica sets, oldest first."""
    spec, status = obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    writer.line(0, "CreationTimestamp:", long_time(obj["metadata"].get("creationTimestamp")))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.line(0, "Selector:", selector_text(spec.get("selector")))
    writer.line(
        0,
        "Replicas:",
        f"{spec.get('replicas', 1)} desired | {status.get('updatedReplicas') or 0} updated | "
        f"{status.get('replicas') or 0} total | {status.get('availableReplicas') or 0} available | "
        f"{status.get('unavailableReplicas') or 0} unavailable",
    )
    strategy = spec.get("strategy") or {}
    writer.line(0, "StrategyType:", strategy.get("type") or "")
    writer.line(0, "MinReadySeconds:", spec.get("minReadySeconds") or 0)
    if strategy.get("rollingUpdate"):
        rolling = strategy["rollingUpdate"]
        writer.line(
            0,
            "RollingUpdateStrategy:",
            f"{rolling.get('maxUnavailable')} max unavailable, {rolling.get('maxSurge')} max surge",
        )
    _template(writer, spec["template"])
    conditions(writer, status.get("conditions"))
    if sets:
        new = new_set(obj, sets)
        writer.line(0, "OldReplicaSets:", _sets_text([item for item in sets if item is not new]))
        writer.line(0, "NewReplicaSet:", _sets_text([new] if new else []))


def new_set(obj: Obj, sets: list[Obj]) -> Obj | None:
    """The oldest replica set whose template is the deployment's, but for the hash."""
    for item in sets:
        template = item["spec"]["template"]
        meta = template.get("metadata") or {}
        labels = {
            key: value
            for key, value in (meta.get("labels") or {}).items()
            if key != "pod-template-hash"
        }
        if {**template, "metadata": {**meta, "labels": labels}} == obj["spec"]["template"]:
            return item
    return None


def _sets_text(sets: list[Obj]) -> str:
    texts = [
        f"{item['metadata']['name']} ({(item.get('status') or {}).get('replicas') or 0}/"
        f"{item['spec'].get('replicas', 1)} replicas created)"
        for item in sets
    ]
    return ", ".join(texts) or "<none>"


def conditions(writer: Writer, items: list[Obj] | None) -> None:
    if not items:
        return
    writer.line(0, "Conditions:\n  Type", "Status", "Reason")
    writer.line(1, "----", "------", "------")
    for condition in items:
        reason = condition.get("reason") or ""
        writer.line(1, f"{condition['type']} ", condition.get("status"), reason)


def pods_status(pods: list[Obj]) -> str:
    phases = [(pod.get("status") or {}).get("phase") for pod in pods]
    return (
        f"{phases.count('Running')} Running / {phases.count('Pending')} Waiting / "
        f"{phases.count('Succeeded')} Succeeded / {phases.count('Failed')} Failed"
    )


def replica_set(writer: Writer, obj: Obj, pods: list[Obj]) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    selector = spec.get("selector")
    is_plain = obj["kind"] == "ReplicationController"
    writer.line(0, "Selector:", pairs_text(selector) if is_plain else selector_text(selector))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    owner = controller_of(obj)
    if owner:
        writer.line(0, "Controlled By:", f"{owner['kind']}/{owner['name']}")
    current, wanted = status.get("replicas") or 0, spec.get("replicas", 1)
    writer.line(0, "Replicas:", f"{current} current / {wanted} desired")
    writer.line(0, "Pods Status:", pods_status(pods))
    _template(writer, spec.get("template") or {})
    conditions(writer, status.get("conditions"))


def stateful_set(writer: Writer, obj: Obj, pods: list[Obj]) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    writer.line(0, "CreationTimestamp:", long_time(obj["metadata"].get("creationTimestamp")))
    writer.line(0, "Selector:", selector_text(spec.get("selector")))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.line(
        0, "Replicas:", f"{spec.get('replicas', 1)} desired | {status.get('replicas') or 0} total"
    )
    strategy = spec.get("updateStrategy") or {}
    writer.line(0, "Update Strategy:", strategy.get("type") or "")
    if strategy.get("rollingUpdate"):
        rolling = strategy["rollingUpdate"]
        writer.line(1, "Partition:", rolling.get("partition") or 0)
        if rolling.get("maxUnavailable") is not None:
            writer.line(1, "MaxUnavailable:", rolling["maxUnavailable"])
    writer.line(0, "Pods Status:", pods_status(pods))
    _template(writer, spec["template"])
    _claim_templates(writer, spec.get("volumeClaimTemplates") or [])


def _claim_templates(writer: Writer, claims: list[Obj]) -> None:
    writer.line(0, "Volume Claims:", *([] if claims else ["<none>"]))
    for claim in claims:
        own = claim.get("spec") or {}
        writer.line(1, "Name:", claim["metadata"]["name"])
        writer.line(1, "StorageClass:", own.get("storageClassName") or "")
        for title, field in (("Labels:", "labels"), ("Annotations:", "annotations")):
            pairs = claim["metadata"].get(field) or {}
            writer.many(title, [f"{key}={pairs[key]}" for key in sorted(pairs)], level=1)
        requests = (own.get("resources") or {}).get("requests") or {}
        writer.line(1, "Capacity:", requests.get("storage") or "<default>")
        writer.line(1, "Access Modes:", f"[{' '.join(own.get('accessModes') or [])}]")


def daemon_set(writer: Writer, obj: Obj, pods: list[Obj]) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    writer.line(0, "Selector:", selector_text(spec.get("selector")))
    node_selector = (spec["template"].get("spec") or {}).get("nodeSelector")
    writer.line(0, "Node-Selector:", pairs_text(node_selector))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    for title, field in (
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ):
        writer.line(0, f"{title}: {status.get(field) or 0}")
    writer.line(0, "Pods Status:", pods_status(pods))
    _template(writer, spec["template"])


def job(writer: Writer, obj: Obj, now: float) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    if spec.get("selector"):
        writer.line(0, "Selector:", selector_text(spec["selector"]))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    owner = controller_of(obj)
    if owner:
        writer.line(0, "Controlled By:", f"{owner['kind']}/{owner['name']}")
    _write_job_wishes(writer, spec)
    _write_job_times(writer, status)
    if spec.get("activeDeadlineSeconds") is not None:
        writer.line(0, "Active Deadline Seconds:", f"{spec['activeDeadlineSeconds']}s")
    ready = f" ({status['ready']} Ready)" if status.get("ready") is not None else ""
    writer.line(
        0,
        "Pods Statuses:",
        f"{status.get('active') or 0} Active{ready} / {status.get('succeeded') or 0} Succeeded / "
        f"{status.get('failed') or 0} Failed",
    )
    if spec.get("completionMode") == "Indexed":
        indexes = status.get("completedIndexes") or "<none>"
        cut = indexes.find(",", LONGEST_INDEXES)
        writer.line(0, "Completed Indexes:", indexes if cut < 0 else f"{indexes[: cut + 1]}...")
    _template(writer, spec["template"])


def _write_job_wishes(writer: Writer, spec: Obj) -> None:
    for title, field in (("Parallelism:", "parallelism"), ("Completions:", "completions")):
        if field == "completions" or spec.get(field) is not None:
            writer.line(0, title, spec[field] if spec.get(field) is not None else "<unset>")
    if spec.get("completionMode"):
        writer.line(0, "Completion Mode:", spec["completionMode"])
    if spec.get("suspend") is not None:
        writer.line(0, "Suspend:", "true" if spec["suspend"] else "false")
    if spec.get("backoffLimit") is not None:
        writer.line(0, "Backoff Limit:", spec["backoffLimit"])
    if spec.get("ttlSecondsAfterFinished") is not None:
        writer.line(0, "TTL Seconds After Finished:", spec["ttlSecondsAfterFinished"])


def _write_job_times(writer: Writer, status: Obj) -> None:
    if status.get("startTime"):
        writer.line(0, "Start Time:", long_time(status["startTime"]))
    if status.get("completionTime"):
        writer.line(0, "Completed At:", long_time(status["completionTime"]))
        took = seconds_of(status["completionTime"]) - seconds_of(status["startTime"])
        writer.line(0, "Duration:", human_duration(took))


def cron_job(writer: Writer, obj: Obj, now: float) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.head(obj)
    writer.line(0, "Schedule:", spec["schedule"])
    writer.line(0, "Concurrency Policy:", spec.get("concurrencyPolicy") or "")
    writer.line(0, "Suspend:", truth(spec.get("suspend")))
    for title, field in (
        ("Successful Job History Limit:", "successfulJobsHistoryLimit"),
        ("Failed Job History Limit:", "failedJobsHistoryLimit"),
    ):
        writer.line(0, title, spec[field] if spec.get(field) is not None else "<unset>")
    deadline = spec.get("startingDeadlineSeconds")
    writer.line(
        0, "Starting Deadline Seconds:", f"{deadline}s" if deadline is not None else "<unset>"
    )
    inner = spec["jobTemplate"].get("spec") or {}
    selector = inner.get("selector")
    writer.line(0, "Selector:", selector_text(selector) if selector else "<unset>")
    for title, field in (("Parallelism:", "parallelism"), ("Completions:", "completions")):
        writer.line(0, title, inner[field] if inner.get(field) is not None else "<unset>")
    if inner.get("activeDeadlineSeconds") is not None:
        writer.line(0, "Active Deadline Seconds:", f"{inner['activeDeadlineSeconds']}s")
    _template(writer, inner["template"])
    writer.line(0, "Last Schedule Time:", long_time(status.get("lastScheduleTime")))
    active = [item["name"] for item in status.get("active") or []]
    writer.line(0, "Active Jobs:", ", ".join(active) or "<none>")
