"""Nodes, namespaces, quotas, limits, access, storage, data, described.

Job: the cluster's own objects as lines.
"""

import base64

from sampan.api import quantity
from sampan.api.objects import Obj, labels_of
from sampan.cli.describe.volumes import source_lines
from sampan.cli.describe.writer import Writer, long_time, pairs_text, selector_text

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_Totals = dict[tuple[str, str], quantity.Quantity]


def config_map(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    writer.line(0, "\nData\n====")
    data = obj.get("data") or {}
    for key in sorted(data):
        writer.line(0, f"{key}:\n----\n{data[key]}\n".replace("\t", "        "))
    writer.line(0, "\nBinaryData\n====")
    binary = obj.get("binaryData") or {}
    for key in sorted(binary):
        writer.line(0, f"{key}: {len(base64.b64decode(binary[key]))} bytes")
    writer.line(0, "")


def secret(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    writer.line(0, "")
    writer.line(0, "Type:", obj.get("type") or "")
    writer.line(0, "\nData\n====")
    data = obj.get("data") or {}
    for key in sorted(data):
        content = base64.b64decode(data[key])
        if key == "token" and obj.get("type") == "kubernetes.io/service-account-token":
            writer.line(0, f"{key}:", content.decode(errors="replace"))
        else:
            writer.line(0, f"{key}:", f"{len(content)} bytes")


def claim(writer: Writer, obj: Obj, users: list[str]) -> None:
    spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
    writer.line(0, "Name:", meta["name"])
    writer.line(0, "Namespace:", meta["namespace"])
    writer.line(0, "StorageClass:", spec.get("storageClassName") or "")
    phase = status.get("phase") or ""
    if meta.get("deletionTimestamp"):
        phase = "Terminating"
    writer.line(0, "Status:", phase)
    writer.line(0, "Volume:", spec.get("volumeName") or "")
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.line(0, "Finalizers:", f"[{' '.join(meta.get('finalizers') or [])}]")
    bound = bool(spec.get("volumeName"))
    writer.line(
        0, "Capacity:", (status.get("capacity") or {}).get("storage") or "" if bound else ""
    )
    modes = ",".join(_MODES.get(mode, mode) for mode in status.get("accessModes") or [])
    writer.line(0, "Access Modes:", modes if bound else "")
    if spec.get("volumeMode"):
        writer.line(0, "VolumeMode:", spec["volumeMode"])
    writer.many("Used By:", users)


def volume(writer: Writer, obj: Obj, now: float) -> None:
    spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
    writer.line(0, "Name:", meta["name"])
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.line(0, "Finalizers:", f"[{' '.join(meta.get('finalizers') or [])}]")
    writer.line(0, "StorageClass:", spec.get("storageClassName") or "")
    phase = status.get("phase") or ""
    writer.line(0, "Status:", "Terminating" if meta.get("deletionTimestamp") else phase)
    owner = spec.get("claimRef")
    writer.line(0, "Claim:", f"{owner['namespace']}/{owner['name']}" if owner else "")
    writer.line(0, "Reclaim Policy:", spec.get("persistentVolumeReclaimPolicy") or "")
    modes = ",".join(_MODES.get(mode, mode) for mode in spec.get("accessModes") or [])
    writer.line(0, "Access Modes:", modes)
    if spec.get("volumeMode"):
        writer.line(0, "VolumeMode:", spec["volumeMode"])
    writer.line(0, "Capacity:", (spec.get("capacity") or {}).get("storage") or "")
    _node_affinity(writer, spec.get("nodeAffinity"))
    writer.line(0, "Message:", status.get("message") or "")
    writer.line(0, "Source:")
    source_lines(writer, spec, 2)


def _node_affinity(writer: Writer, affinity: Obj | None) -> None:
    if not affinity:
        writer.line(0, "Node Affinity:", "<none>")
        return
    writer.line(0, "Node Affinity:")
    writer.line(1, "Required Terms:")
    for index, term in enumerate((affinity.get("required") or {}).get("nodeSelectorTerms") or []):
        parts = [
            f"{expression['key']} {expression['operator'].lower()} [{', '.join(expression.get('values') or [])}]"
            for expression in term.get("matchExpressions") or []
        ]
        writer.line(2, f"Term {index}:", "\n\t".join(parts))


def storage_class(writer: Writer, obj: Obj, now: float) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    writer.line(0, "IsDefaultClass:", "Yes" if is_default else "No")
    writer.line(0, "Annotations:", pairs_text(annotations))
    writer.line(0, "Provisioner:", obj["provisioner"])
    writer.line(0, "Parameters:", pairs_text(obj.get("parameters")))
    expansion = obj.get("allowVolumeExpansion")
    writer.line(
        0,
        "AllowVolumeExpansion:",
        "<unset>" if expansion is None else "True" if expansion else "False",
    )
    options = obj.get("mountOptions") or []
    if options:
        writer.line(0, "MountOptions:")
        for option in options:
            writer.line(1, option)
    else:
        writer.line(0, "MountOptions:", "<none>")
    writer.line(0, "ReclaimPolicy:", obj.get("reclaimPolicy") or "")
    writer.line(0, "VolumeBindingMode:", obj.get("volumeBindingMode") or "")


def priority_class(writer: Writer, obj: Obj, now: float) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Value:", obj["value"])
    writer.line(0, "GlobalDefault:", "true" if obj.get("globalDefault") else "false")
    writer.line(0, "PreemptionPolicy:", obj.get("preemptionPolicy") or "")
    writer.line(0, "Description:", obj.get("description") or "")
    writer.line(0, "Annotations:", pairs_text(obj["metadata"].get("annotations")))


def service_account(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    names = [item["name"] for item in obj.get("imagePullSecrets") or []]
    writer.many("Image pull secrets:", names)


def disruption_budget(writer: Writer, obj: Obj, now: float) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    if spec.get("minAvailable") is not None:
        writer.line(0, "Min available:", spec["minAvailable"])
    elif spec.get("maxUnavailable") is not None:
        writer.line(0, "Max unavailable:", spec["maxUnavailable"])
    selector = spec.get("selector")
    writer.line(0, "Selector:", selector_text(selector) if selector else "<unset>")
    writer.line(0, "Status:")
    for title, field in (
        ("Allowed disruptions:", "disruptionsAllowed"), ("Current:", "currentHealthy"),
        ("Desired:", "desiredHealthy"), ("Total:", "expectedPods"),
    ):  # fmt: skip
        writer.line(2, title, status.get(field) or 0)


def rules(writer: Writer, obj: Obj) -> None:
    from sampan.cli.describe.access_rules import breakdown

    writer.head(obj, namespaced=False)
    writer.line(0, "PolicyRule:")
    writer.line(1, "Resources", "Non-Resource URLs", "Resource Names", "Verbs")
    writer.line(1, "---------", "-----------------", "--------------", "-----")
    for row in breakdown(obj.get("rules") or []):
        writer.line(1, *row)


def role(writer: Writer, obj: Obj, now: float) -> None:
    rules(writer, obj)


def binding(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj, namespaced=False)
    writer.line(0, "Role:")
    writer.line(1, "Kind:", obj["roleRef"]["kind"])
    writer.line(1, "Name:", obj["roleRef"]["name"])
    writer.line(0, "Subjects:")
    writer.line(1, "Kind", "Name", "Namespace")
    writer.line(1, "----", "----", "---------")
    for subject in obj.get("subjects") or []:
        writer.line(1, subject["kind"], subject["name"], subject.get("namespace") or "")


def quota(writer: Writer, obj: Obj, now: float) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    if obj["spec"].get("scopes"):
        writer.line(0, "Scopes:", ", ".join(sorted(obj["spec"]["scopes"])))
    writer.line(0, "Resource", "Used", "Hard")
    writer.line(0, "--------", "----", "----")
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    for name in sorted(hard):
        writer.line(0, name, used.get(name, "0"), hard[name])


def limits_rows(obj: Obj) -> list[list[str]]:
    rows = []
    for limit in obj["spec"].get("limits") or []:
        fields = ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")
        names = sorted({name for field in fields for name in limit.get(field) or {}})
        for name in names:
            rows.append(
                [
                    limit["type"],
                    name,
                    *((limit.get(field) or {}).get(name, "-") for field in fields),
                ]
            )
    return rows


LIMIT_TITLES = [
    "Type",
    "Resource",
    "Min",
    "Max",
    "Default Request",
    "Default Limit",
    "Max Limit/Request Ratio",
]


def limits(writer: Writer, obj: Obj, now: float) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    writer.line(0, *LIMIT_TITLES)
    writer.line(0, *("-" * len(title) for title in LIMIT_TITLES))
    for row in limits_rows(obj):
        writer.line(0, *row)


def namespace(writer: Writer, obj: Obj, quotas: list[Obj], ranges: list[Obj]) -> None:
    writer.head(obj, namespaced=False)
    writer.line(0, "Status:", (obj.get("status") or {}).get("phase") or "")
    writer.flush()
    if quotas:
        writer.line(0, "\nResource Quotas")
        writer.flush()
        for entry in quotas:
            writer.line(1, "Name:", entry["metadata"]["name"])
            writer.line(1, "Resource", "Used", "Hard")
            writer.line(1, "--------", "---", "---")
            status = entry.get("status") or {}
            hard, used = status.get("hard") or {}, status.get("used") or {}
            for name in sorted(hard):
                writer.line(1, name, used.get(name, "0"), hard[name])
            writer.flush()
    else:
        writer.line(0, "\nNo resource quota.")
    if ranges:
        writer.line(0, "\nResource Limits")
        writer.flush()
        writer.line(0, *[f" {LIMIT_TITLES[0]}", *LIMIT_TITLES[1:]])
        writer.line(0, *[" ----", *("-" * len(title) for title in LIMIT_TITLES[1:])])
        for entry in ranges:
            for row in limits_rows(entry):
                writer.line(0, *[f" {row[0]}", *row[1:]])
    else:
        writer.line(0, "\nNo LimitRange resource.")


def node(writer: Writer, obj: Obj, pods: list[Obj], lease: Obj | None, now: float) -> None:
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    writer.line(0, "Name:", meta["name"])
    writer.line(0, "Roles:", _roles(meta))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.line(0, "CreationTimestamp:", long_time(meta.get("creationTimestamp")))
    writer.many("Taints:", sorted(_taint_text(taint) for taint in spec.get("taints") or []))
    writer.line(0, "Unschedulable:", "true" if spec.get("unschedulable") else "false")
    _lease(writer, lease)
    _write_node_conditions(writer, status.get("conditions") or [])
    writer.line(0, "Addresses:")
    for address in status.get("addresses") or []:
        writer.line(1, f"{address['type']}:", address["address"])
    _write_node_amounts(writer, status)
    _write_system_info(writer, status.get("nodeInfo") or {})
    for title, field in (("PodCIDR:", "podCIDR"), ("ProviderID:", "providerID")):
        if spec.get(field):
            writer.line(0, title, spec[field])
    if spec.get("podCIDRs"):
        writer.line(0, "PodCIDRs:", ",".join(spec["podCIDRs"]))
    _node_pods(writer, status, pods, now)


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
            1, condition["type"], condition["status"], long_time(condition.get("lastHeartbeatTime")),
            long_time(condition.get("lastTransitionTime")), condition.get("reason") or "",
            condition.get("message") or "",
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


def _lease(writer: Writer, lease: Obj | None) -> None:
    writer.line(0, "Lease:")
    spec = (lease or {}).get("spec") or {}
    writer.line(1, "HolderIdentity:", spec.get("holderIdentity") or "<unset>")
    writer.line(1, "AcquireTime:", long_time(spec.get("acquireTime")))
    writer.line(1, "RenewTime:", long_time(spec.get("renewTime")))


def _node_pods(writer: Writer, status: Obj, pods: list[Obj], now: float) -> None:
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    running = [
        pod for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
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
    from sampan.api.objects import seconds_of
    from sampan.api.rules.durations import human_duration
    from sampan.cli.describe.pod_amounts import pod_amounts

    requests, own_limits = pod_amounts(pod)
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
    extended = sorted(name for name in allocatable if "/" in name or name.startswith("hugepages-"))
    for name in ("cpu", "memory", "ephemeral-storage", *extended):
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
