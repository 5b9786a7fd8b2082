"""Deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs, autoscalers, described.

Job: what each wants and has.
"""

from sampan.api.objects import Obj, controller_of, labels_of
from sampan.api.rules.durations import human_duration
from sampan.cli.describe.pod import template_lines
from sampan.cli.describe.writer import Writer, long_time, pairs_text, selector_text, truth


def _template(writer: Writer, template: Obj) -> None:
    writer.line(0, "Pod Template:")
    template_lines(writer, template)


def deployment(writer: Writer, obj: Obj, now: float) -> None:
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


def conditions(writer: Writer, items: list[Obj] | None) -> None:
    if not items:
        return
    writer.line(0, "Conditions:\n  Type", "Status", "Reason")
    writer.line(1, "----", "------", "------")
    for condition in items:
        writer.line(1, condition["type"], condition.get("status"), condition.get("reason") or "")


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
        writer.line(1, "Partition:", strategy["rollingUpdate"].get("partition") or 0)
    writer.line(0, "Pods Status:", pods_status(pods))
    _template(writer, spec["template"])
    claims = spec.get("volumeClaimTemplates") or []
    if not claims:
        writer.line(0, "Volume Claims:", "<none>")
        return
    writer.line(0, "Volume Claims:")
    for claim in claims:
        own = claim.get("spec") or {}
        writer.line(1, "Name:", claim["metadata"]["name"])
        writer.line(1, "StorageClass:", own.get("storageClassName") or "")
        writer.line(1, "Labels:", pairs_text(claim["metadata"].get("labels")))
        writer.line(1, "Annotations:", pairs_text(claim["metadata"].get("annotations")))
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
        from sampan.api.objects import seconds_of

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


def autoscaler(writer: Writer, obj: Obj, now: float) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.head(obj)
    writer.line(0, "CreationTimestamp:", long_time(obj["metadata"].get("creationTimestamp")))
    target = spec["scaleTargetRef"]
    writer.line(0, "Reference:", f"{target['kind']}/{target['name']}")
    writer.line(0, "Metrics:", "( current / target )")
    for metric in spec.get("metrics") or []:
        _metric(writer, metric, status.get("currentMetrics") or [])
    least = spec.get("minReplicas")
    writer.line(0, "Min replicas:", least if least is not None else "<unset>")
    writer.line(0, "Max replicas:", spec["maxReplicas"])
    current, wanted = status.get("currentReplicas") or 0, status.get("desiredReplicas") or 0
    writer.line(0, f"{target['kind']} pods:", f"{current} current / {wanted} desired")
    if status.get("conditions"):
        writer.line(0, "Conditions:\n  Type", "Status", "Reason", "Message")
        writer.line(1, "----", "------", "------", "-------")
        for condition in status["conditions"]:
            writer.line(
                1,
                condition["type"],
                condition["status"],
                condition.get("reason"),
                condition.get("message"),
            )


def _metric(writer: Writer, metric: Obj, current: list[Obj]) -> None:
    if metric["type"] != "Resource":
        writer.line(1, f'"{metric["type"]}" metric:', "<unknown>")
        return
    name, target = metric["resource"]["name"], metric["resource"]["target"]
    known: Obj = next(
        (
            item["resource"]["current"]
            for item in current
            if item.get("resource", {}).get("name") == name
        ),
        {},
    )
    if target["type"] == "Utilization":
        now_text = "<unknown>"
        if known.get("averageUtilization") is not None:
            now_text = f"{known['averageUtilization']}% ({known.get('averageValue')})"
        writer.line(
            1,
            f"resource {name} on pods  (as a percentage of request):",
            f"{now_text} / {target['averageUtilization']}%",
        )
        return
    value = known.get("averageValue") or "<unknown>"
    writer.line(1, f"resource {name} on pods:", f"{value} / {target.get('averageValue')}")
