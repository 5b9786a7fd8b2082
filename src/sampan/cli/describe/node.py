"""Nodes, described.

Job: what a node is, what it has, and what its pods take of it.
"""

from sampan.api import quantity
from sampan.api.objects import Obj, labels_of, seconds_of
from sampan.api.rules.durations import human_duration
from sampan.api.rules.pods import is_terminal
from sampan.cli.describe.writer import Writer, long_time

_Totals = dict[tuple[str, str], quantity.Quantity]


def node(writer: Writer, obj: Obj, pods: list[Obj] | None, lease: Obj | str, now: float) -> None:
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    writer.line(0, "Name:", meta["name"])
    writer.line(0, "Roles:", _roles(meta))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.line(0, "CreationTimestamp:", long_time(meta.get("creationTimestamp")))
    writer.many(
        "Taints:",
        [_taint_text(taint) for taint in sorted(spec.get("taints") or [], key=_taint_key)],
    )
    writer.line(0, "Unschedulable:", "true" if spec.get("unschedulable") else "false")
    _lease(writer, lease)
    _write_node_conditions(writer, status.get("conditions") or [])
    writer.line(0, "Addresses:")
    for address in status.get("addresses") or []:
        writer.line(1, f"{address['type']}:", address["address"])
    _write_node_amounts(writer, status)
    _write_system_info(writer, status.get("nodeInfo") or {})
    if spec.get("podCIDR"):
        writer.line(0, "PodCIDR:", spec["podCIDR"])
    if spec.get("podCIDRs"):
        writer.line(0, "PodCIDRs:", ",".join(spec["podCIDRs"]))
    if spec.get("providerID"):
        writer.line(0, "ProviderID:", spec["providerID"])
    if pods is None:
        writer.line(0, "Pods:", "not authorized")
    else:
        _node_pods(writer, status, pods, now)


def _taint_key(taint: Obj) -> str:
    return f"{taint['effect']},{taint['key']}"


def _taint_text(taint: Obj) -> str:
    return f"{taint['key']}{'=' + taint['value'] if taint.get('value') else ''}:{taint['effect']}"


def _write_node_conditions(writer: Writer, conditions: list[Obj]) -> None:
    if not conditions:
        return
    writer.line(
        0,
        "Conditions:\n  Type",
        "Status",
        "LastHeartbeatTime",
        "LastTransitionTime",
        "Reason",
        "Message",
    )
    writer.line(1, "----", "------", "-----------------", "------------------", "------", "-------")
    for condition in conditions:
        writer.line(
            1, f"{condition['type']} ", f"{condition['status']} ",
            f"{long_time(condition.get('lastHeartbeatTime'))} ",
            f"{long_time(condition.get('lastTransitionTime'))} ",
            f"{condition.get('reason') or ''} ", condition.get("message") or "",
        )  # fmt: skip


def _write_node_amounts(writer: Writer, status: Obj) -> None:
    for title, field in (("Capacity:", "capacity"), ("Allocatable:", "allocatable")):
        amounts = status.get(field) or {}
        if amounts:
            writer.line(0, title)
            for name in sorted(amounts):
                writer.line(1, f"{name}:", amounts[name])


def _write_system_info(writer: Writer, info: Obj) -> None:
    writer.line(0, "System Info:")
    for title, field in (
        ("Machine ID:", "machineID"), ("System UUID:", "systemUUID"), ("Boot ID:", "bootID"),
        ("Kernel Version:", "kernelVersion"), ("OS Image:", "osImage"),
        ("Operating System:", "operatingSystem"), ("Architecture:", "architecture"),
        ("Container Runtime Version:", "containerRuntimeVersion"), ("Kubelet Version:", "kubeletVersion"),
        ("Kube-Proxy Version:", "kubeProxyVersion"),
    ):  # fmt: skip
        writer.line(1, title, info.get(field) or "")


def _roles(meta: Obj) -> str:
    found = []
    for key, value in (meta.get("labels") or {}).items():
        if key.startswith("node-role.kubernetes.io/"):
            found.append(key.partition("/")[2])
        elif key == "kubernetes.io/role" and value:
            found.append(value)
    return ",".join(sorted(filter(None, found))) or "<none>"


def _lease(writer: Writer, lease: Obj | str) -> None:
    """A text is why there is none to show."""
    if isinstance(lease, str):
        writer.line(0, "Lease:", f"Failed to get lease: {lease}")
        return
    writer.line(0, "Lease:")
    spec = lease.get("spec") or {}
    writer.line(1, "HolderIdentity:", spec.get("holderIdentity") or "<unset>")
    writer.line(1, "AcquireTime:", long_time(spec.get("acquireTime")))
    writer.line(1, "RenewTime:", long_time(spec.get("renewTime")))


def _node_pods(writer: Writer, status: Obj, pods: list[Obj], now: float) -> None:
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    running = [pod for pod in pods if not is_terminal(pod)]
    running.sort(key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))
    writer.line(0, "Non-terminated Pods:", f"({len(running)} in total)")
    writer.line(
        1,
        "Namespace",
        "Name",
        "",
        "CPU Requests",
        "CPU Limits",
        "Memory Requests",
        "Memory Limits",
        "Age",
    )
    writer.line(
        1,
        "---------",
        "----",
        "",
        "------------",
        "----------",
        "---------------",
        "-------------",
        "---",
    )
    totals: _Totals = {}
    for pod in running:
        _write_node_pod(writer, pod, allocatable, totals, now)
    _write_totals(writer, allocatable, totals)


def _write_node_pod(
    writer: Writer, pod: Obj, allocatable: Obj, totals: _Totals, now: float
) -> None:
    """The pod's line; its amounts are added to the totals."""
    from sampan.api.rules.pod_resources import described_amounts

    requests, own_limits = described_amounts(pod)
    cells = []
    for name in ("cpu", "memory"):
        for amounts in (requests, own_limits):
            amount = amounts.get(name, quantity.from_value(0))
            cells.append(f"{amount} ({_share(amount, allocatable.get(name))})")
    for field, amounts in (("requests", requests), ("limits", own_limits)):
        for name, amount in amounts.items():
            totals[name, field] = totals.get((name, field), quantity.from_value(0)) + amount
    created = seconds_of(pod["metadata"]["creationTimestamp"])
    age = human_duration(max(now - created, 0))
    writer.line(1, pod["metadata"]["namespace"], pod["metadata"]["name"], "", *cells, age)


def _write_totals(writer: Writer, allocatable: Obj, totals: _Totals) -> None:
    writer.line(
        0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)"
    )
    writer.line(1, "Resource", "Requests", "Limits")
    writer.line(1, "--------", "--------", "------")
    pages = sorted(name for name in allocatable if name.startswith("hugepages-"))
    extended = sorted(name for name in allocatable if "/" in name)
    for name in ("cpu", "memory", "ephemeral-storage", *pages, *extended):
        cells = []
        for field in ("requests", "limits"):
            amount = totals.get((name, field), quantity.from_value(0))
            share = "" if "/" in name else f" ({_share(amount, allocatable.get(name))})"
            cells.append(f"{amount}{share}")
        writer.line(1, name, *cells)


def _share(amount: quantity.Quantity, whole: str | None) -> str:
    if not whole:
        return "0%"
    total = quantity.parse(str(whole)).milli()
    return f"{amount.milli() * 100 // total}%" if total else "0%"
