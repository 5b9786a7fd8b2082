"""Claims, volumes and their classes, described.

Job: what storage is asked for, what there is, and who has it.
"""

from sampan.api.objects import Obj, labels_of, seconds_of
from sampan.api.rules.durations import human_duration
from sampan.cli.describe.volumes import source_lines
from sampan.cli.describe.writer import Writer, long_time, pairs_text

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
ZERO_TIME = "Mon, 01 Jan 0001 00:00:00 +0000"  # as Go prints a time that nobody set


def claim(writer: Writer, obj: Obj, users: list[str], now: float) -> None:
    spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
    writer.line(0, "Name:", meta["name"])
    writer.line(0, "Namespace:", meta["namespace"])
    writer.line(0, "StorageClass:", spec.get("storageClassName") or "")
    writer.line(0, "Status:", phase_text(meta, status, now))
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
    source = spec.get("dataSource")
    if source:
        writer.line(0, "DataSource:")
        if source.get("apiGroup") is not None:
            writer.line(1, "APIGroup:", source["apiGroup"])
        writer.line(1, "Kind:", source["kind"])
        writer.line(1, "Name:", source["name"])
    writer.many("Used By:", sorted(users))
    _claim_conditions(writer, status.get("conditions") or [])


def _claim_conditions(writer: Writer, conditions: list[Obj]) -> None:
    if not conditions:
        return
    writer.line(0, "Conditions:")
    writer.line(1, "Type", "Status", "LastProbeTime", "LastTransitionTime", "Reason", "Message")
    writer.line(1, "----", "------", "-----------------", "------------------", "------", "-------")
    for condition in conditions:
        probed, changed = condition.get("lastProbeTime"), condition.get("lastTransitionTime")
        writer.line(
            1,
            f"{condition['type']} ",
            f"{condition['status']} ",
            f"{long_time(probed, ZERO_TIME)} ",
            f"{long_time(changed, ZERO_TIME)} ",
            f"{condition.get('reason') or ''} ",
            condition.get("message") or "",
        )


def phase_text(meta: Obj, status: Obj, now: float) -> str:
    if not meta.get("deletionTimestamp"):
        return str(status.get("phase") or "")
    lasts = human_duration(max(now - seconds_of(meta["deletionTimestamp"]), 0))
    return f"Terminating (lasts {lasts})"


def volume(writer: Writer, obj: Obj, now: float) -> None:
    spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
    writer.line(0, "Name:", meta["name"])
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.line(0, "Finalizers:", f"[{' '.join(meta.get('finalizers') or [])}]")
    writer.line(0, "StorageClass:", spec.get("storageClassName") or "")
    writer.line(0, "Status:", phase_text(meta, status, now))
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
    writer.line(0, "Node Affinity:", "")
    if not affinity.get("required"):
        writer.line(1, "Required Terms:", "<none>")
        return
    writer.line(1, "Required Terms:", "")
    for index, term in enumerate(affinity["required"].get("nodeSelectorTerms") or []):
        parts = [_expression_text(expression) for expression in term.get("matchExpressions") or []]
        writer.line(2, f"Term {index}:", "\n    \t".join(parts) or "<none>")


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

    topologies = obj.get("allowedTopologies")
    if topologies is None:
        return
    writer.line(0, "AllowedTopologies:", "" if topologies else "<none>")
    for index, term in enumerate(topologies):
        parts = [
            _expression_text({**expression, "operator": "In"})
            for expression in term.get("matchLabelExpressions") or []
        ]
        writer.line(1, f"Term {index}:", "\n  \t".join(parts) or "<none>")


def attributes_class(writer: Writer, obj: Obj, now: float) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Annotations:", pairs_text(obj["metadata"].get("annotations")))
    writer.line(0, "DriverName:", obj["driverName"])
    writer.line(0, "Parameters:", pairs_text(obj.get("parameters")))


def csi_node(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj, namespaced=False)
    writer.line(0, "CreationTimestamp:", long_time(obj["metadata"].get("creationTimestamp")))
    writer.line(0, "Spec:")
    drivers = obj["spec"].get("drivers")
    if drivers is None:
        return
    writer.line(1, "Drivers:")
    for driver in drivers:
        writer.line(2, f"{driver['name']}:")
        writer.line(3, "Node ID:", driver["nodeID"])
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None:
            writer.line(3, "Allocatables:")
            writer.line(4, "Count:", count)
        if driver.get("topologyKeys") is not None:
            writer.line(3, "Topology Keys:", f"[{' '.join(driver['topologyKeys'])}]")


def _expression_text(expression: Obj) -> str:
    text = f"{expression['key']} {expression['operator'].lower()}"
    values = expression.get("values") or []
    return f"{text} [{', '.join(values)}]" if values else text
