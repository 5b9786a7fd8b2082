"""Horizontal pod autoscalers, described.

Job: each metric with its target, how fast it may scale, what it did.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.cli.describe.writer import Writer, long_time

UNKNOWN = "<unknown>"
PER_REQUEST = "  (as a percentage of request):"


def autoscaler(writer: Writer, obj: Obj, now: float) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.head(obj)
    writer.line(0, "CreationTimestamp:", long_time(obj["metadata"].get("creationTimestamp")))
    target = spec["scaleTargetRef"]
    writer.line(0, "Reference:", f"{target['kind']}/{target['name']}")
    writer.line(0, "Metrics:", "( current / target )")
    measured = status.get("currentMetrics") or []
    for index, metric in enumerate(spec.get("metrics") or []):
        _metric(writer, metric, measured[index] if index < len(measured) else {})
    least = spec.get("minReplicas")
    writer.line(0, "Min replicas:", least if least is not None else "<unset>")
    writer.line(0, "Max replicas:", spec["maxReplicas"])
    behavior = spec.get("behavior")
    if behavior:
        writer.line(0, "Behavior:")
        _rules(writer, "Scale Up:", behavior.get("scaleUp"))
        _rules(writer, "Scale Down:", behavior.get("scaleDown"))
    current, wanted = status.get("currentReplicas") or 0, status.get("desiredReplicas") or 0
    writer.line(0, f"{target['kind']} pods:", f"{current} current / {wanted} desired")
    _conditions(writer, status.get("conditions") or [])


def _conditions(writer: Writer, conditions: list[Obj]) -> None:
    if not conditions:
        return
    writer.line(0, "Conditions:\n  Type", "Status", "Reason", "Message")
    writer.line(1, "----", "------", "------", "-------")
    for entry in conditions:
        reason, message = entry.get("reason") or "", entry.get("message") or ""
        writer.line(1, entry["type"], entry["status"], reason, message)


def _metric(writer: Writer, metric: Obj, measured: Obj) -> None:
    """`measured` is what the autoscaler has last seen of it."""
    kind = metric["type"]
    field = kind[:1].lower() + kind[1:]
    own = metric.get(field) or {}
    target: Obj = own.get("target") or {}
    current: Obj = (measured.get(field) or {}).get("current") or {}
    match kind:
        case "Pods":
            title = f'"{own["metric"]["name"]}" on pods:'
            writer.line(1, title, _pair(current, target, "averageValue"))
        case "External":
            _value(writer, f'"{own["metric"]["name"]}"', current, target)
        case "Object":
            what = own["describedObject"]
            name = f'"{own["metric"]["name"]}" on {what["kind"]}/{what["name"]}'
            _value(writer, name, current, target)
        case "Resource":
            _resource(writer, f"resource {own['name']} on pods", current, target)
        case "ContainerResource":
            title = f'resource {own["name"]} of container "{own["container"]}" on pods'
            _resource(writer, title, current, target)
        case _:
            writer.line(1, f'<unknown metric type "{kind}">')


def _value(writer: Writer, name: str, current: Obj, target: Obj) -> None:
    if target.get("averageValue") is not None:
        writer.line(1, f"{name} (target average value):", _pair(current, target, "averageValue"))
    else:
        writer.line(1, f"{name} (target value):", _pair(current, target, "value"))


def _resource(writer: Writer, title: str, current: Obj, target: Obj) -> None:
    if target.get("averageValue") is not None:
        writer.line(1, f"{title}:", _pair(current, target, "averageValue"))
        return
    share, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    now = UNKNOWN if share is None else f"{share}% ({current.get('averageValue') or 0})"
    writer.line(1, title + PER_REQUEST, f"{now} / {'<auto>' if wanted is None else f'{wanted}%'}")


def _pair(current: Obj, target: Obj, field: str) -> str:
    now: Any = current.get(field)
    return f"{UNKNOWN if now is None else now} / {target.get(field)}"


def _rules(writer: Writer, title: str, rules: Obj | None) -> None:
    if rules is None:
        return
    writer.line(1, title)
    if rules.get("stabilizationWindowSeconds") is not None:
        writer.line(2, f"Stabilization Window: {rules['stabilizationWindowSeconds']} seconds")
    policies = rules.get("policies") or []
    if policies:
        writer.line(2, f"Select Policy: {rules.get('selectPolicy') or 'Max'}")
        writer.line(2, "Policies:")
    for policy in policies:
        period = f"Period: {policy['periodSeconds']} seconds"
        writer.line(3, f"- Type: {policy['type']}", f"Value: {policy['value']}", period)
