"""Pods and pod templates, described.

Job: a pod's spec and status as lines.
"""

from typing import Any

from sampan.api import quantity
from sampan.api.objects import Obj, controller_of, seconds_of
from sampan.api.rules.durations import human_duration
from sampan.api.rules.pods import TERMINAL_PHASES
from sampan.cli.describe.volumes import volume_lines
from sampan.cli.describe.writer import Writer, long_time, selector_text, truth


def pod(writer: Writer, obj: Obj, now: float) -> None:
    meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", meta["name"])
    writer.line(0, "Namespace:", meta.get("namespace") or "")
    if spec.get("priority") is not None:
        writer.line(0, "Priority:", spec["priority"])
    for title, field in (
        ("Priority Class Name:", "priorityClassName"),
        ("Runtime Class Name:", "runtimeClassName"),
        ("Service Account:", "serviceAccountName"),
    ):
        if spec.get(field):
            writer.line(0, title, spec[field])
    node = spec.get("nodeName")
    writer.line(0, "Node:", f"{node}/{status.get('hostIP') or ''}" if node else "<none>")
    if status.get("startTime"):
        writer.line(0, "Start Time:", long_time(status["startTime"]))
    writer.labels("Labels:", meta.get("labels"))
    writer.annotations(obj)
    _state(writer, meta, status, now)
    _seccomp(writer, 0, spec.get("securityContext"))
    writer.line(0, "IP:", status.get("podIP") or "")
    _addresses(writer, status.get("podIPs") or [])
    owner = controller_of(obj)
    if owner:
        writer.line(0, "Controlled By:", f"{owner['kind']}/{owner['name']}")
    if status.get("nominatedNodeName"):
        writer.line(0, "NominatedNodeName:", status["nominatedNodeName"])
    if spec.get("resources"):
        writer.line(0, "Resources:")
        _resources(writer, spec["resources"], 1)
    _all_containers(writer, obj)
    _conditions(writer, spec, status)
    volume_lines(writer, spec.get("volumes"), "")
    if status.get("qosClass"):
        writer.line(0, "QoS Class:", status["qosClass"])
    _placement(writer, spec, "")
    _spreads(writer, spec, "")


def _addresses(writer: Writer, addresses: list[Obj]) -> None:
    writer.line(0, "IPs:", *([] if addresses else ["<none>"]))
    for address in addresses:
        writer.line(1, "IP:", address["ip"])


def _state(writer: Writer, meta: Obj, status: Obj, now: float) -> None:
    is_over = status.get("phase") in TERMINAL_PHASES
    if meta.get("deletionTimestamp") and not is_over:
        lasts = human_duration(max(now - seconds_of(meta["deletionTimestamp"]), 0))
        writer.line(0, "Status:", f"Terminating (lasts {lasts})")
        grace = meta.get("deletionGracePeriodSeconds")
        writer.line(0, "Termination Grace Period:", f"{grace}s")
    else:
        writer.line(0, "Status:", status.get("phase") or "")
    for title, field in (("Reason:", "reason"), ("Message:", "message")):
        if status.get(field):
            writer.line(0, title, status[field])


def _seccomp(writer: Writer, level: int, context: Obj | None) -> None:
    profile = (context or {}).get("seccompProfile")
    if not profile:
        return
    writer.line(level, "SeccompProfile:", profile["type"])
    if profile["type"] == "Localhost":
        deeper = level + 1 if level else 0  # a pod's is not indented
        writer.line(deeper, "LocalhostProfile:", profile.get("localhostProfile") or "")


def _all_containers(writer: Writer, obj: Obj) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    for title, field, states in (
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
    ):
        if spec.get(field):
            known = {state["name"]: state for state in status.get(states) or []}
            containers(writer, title, spec[field], known, obj, "")


def containers(
    writer: Writer,
    title: str,
    items: list[Obj],
    states: dict[str, Obj],
    pod_obj: Obj | None,
    space: str,
) -> None:
    level = 1 if space else 0
    writer.line(level, f"{title}:")
    for container in items:
        writer.line(1, f"{' ' if space else ''}{container['name']}:")
        _basics(writer, container, states.get(container["name"]))
        _words(writer, "Command:", container.get("command"))
        _words(writer, "Args:", container.get("args"))
        if container["name"] in states:
            _runtime_state(writer, states[container["name"]])
        _resources(writer, container.get("resources") or {}, 2)
        for name, field in (
            ("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")
        ):  # fmt: skip
            if container.get(field):
                writer.line(2, f"{name}:", probe_text(container[field]))
        _environment(writer, container, pod_obj)
        _mounts(writer, container)


def _basics(writer: Writer, container: Obj, state: Obj | None) -> None:
    if state is not None:
        writer.line(2, "Container ID:", state.get("containerID") or "")
    writer.line(2, "Image:", container.get("image") or "")
    if state is not None:
        writer.line(2, "Image ID:", state.get("imageID") or "")
    ports = container.get("ports") or []
    own = [_port_text(port, "containerPort") for port in ports]
    host = [_port_text(port, "hostPort") for port in ports]
    plural = "s" if len(ports) > 1 else ""
    writer.line(2, f"Port{plural}:", ", ".join(own) or "<none>")
    writer.line(2, f"Host Port{plural}:", ", ".join(host) or "<none>")
    _seccomp(writer, 2, container.get("securityContext"))


def _port_text(port: Obj, field: str) -> str:
    name = f" ({port['name']})" if port.get("name") else ""
    return f"{port.get(field) or 0}/{port.get('protocol') or 'TCP'}{name}"


def _words(writer: Writer, title: str, words: list[str] | None) -> None:
    if words:
        writer.line(2, title)
        for word in words:
            for part in word.split("\n"):
                writer.line(3, part)


def _runtime_state(writer: Writer, state: Obj) -> None:
    _one_state(writer, "State", state.get("state") or {}, is_current=True)
    _one_state(writer, "Last State", state.get("lastState") or {}, is_current=False)
    writer.line(2, "Ready:", truth(state.get("ready")))
    writer.line(2, "Restart Count:", state.get("restartCount") or 0)


def _one_state(writer: Writer, title: str, state: Obj, *, is_current: bool) -> None:
    if "running" in state and is_current:
        writer.line(2, f"{title}:", "Running")
        writer.line(3, "Started:", long_time((state["running"] or {}).get("startedAt")))
    elif "terminated" in state:
        ended = state["terminated"]
        writer.line(2, f"{title}:", "Terminated")
        for name in ("reason", "message"):
            if ended.get(name):
                writer.line(3, f"{name.title()}:", ended[name])
        writer.line(3, "Exit Code:", ended.get("exitCode") or 0)
        if ended.get("signal"):
            writer.line(3, "Signal:", ended["signal"])
        writer.line(3, "Started:", long_time(ended.get("startedAt")))
        writer.line(3, "Finished:", long_time(ended.get("finishedAt")))
    elif is_current:
        writer.line(2, f"{title}:", "Waiting")
        reason = (state.get("waiting") or {}).get("reason")
        if reason:
            writer.line(3, "Reason:", reason)


def _resources(writer: Writer, resources: Obj, level: int) -> None:
    for title, field in (("Limits:", "limits"), ("Requests:", "requests")):
        if resources.get(field):
            writer.line(level, title)
            for name in sorted(resources[field]):
                writer.line(level + 1, f"{name}:", resources[field][name])


def probe_text(probe: Obj) -> str:
    attributes = (
        f"delay={probe.get('initialDelaySeconds') or 0}s timeout={probe.get('timeoutSeconds') or 0}s "
        f"period={probe.get('periodSeconds') or 0}s #success={probe.get('successThreshold') or 0} "
        f"#failure={probe.get('failureThreshold') or 0}"
    )
    if probe.get("exec"):
        return f"exec [{' '.join(probe['exec'].get('command') or [])}] {attributes}"
    if probe.get("httpGet"):
        get = probe["httpGet"]
        scheme = (get.get("scheme") or "HTTP").lower()
        return f"http-get {scheme}://{get.get('host') or ''}:{get['port']}{get.get('path') or ''} {attributes}"
    if probe.get("tcpSocket"):
        socket = probe["tcpSocket"]
        return f"tcp-socket {socket.get('host') or ''}:{socket['port']} {attributes}"
    if probe.get("grpc"):
        grpc = probe["grpc"]
        return f"grpc <pod>:{grpc['port']} {grpc.get('service') or ''} {attributes}"
    return f"unknown {attributes}"


def _environment(writer: Writer, container: Obj, pod_obj: Obj | None) -> None:
    if container.get("envFrom"):
        writer.line(2, "Environment Variables from:")
        for source in container["envFrom"]:
            kind = "ConfigMap" if source.get("configMapRef") else "Secret"
            reference = source.get("configMapRef") or source.get("secretRef") or {}
            prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
            optional = f"Optional: {'true' if reference.get('optional') else 'false'}"
            writer.line(3, reference.get("name") or "", f"{kind}{prefix}", optional)
    env = container.get("env") or []
    writer.line(2, "Environment:", *([] if env else ["<none>"]))
    for entry in env:
        first, *more = _value_cells(entry, container, pod_obj)
        lines = str(first).split("\n")
        writer.line(3, f"{entry['name']}:", lines[0], *more)
        for line in lines[1:]:
            writer.line(3, "", line)


def _value_cells(entry: Obj, container: Obj, pod_obj: Obj | None) -> list[Any]:
    source = entry.get("valueFrom")
    if not source:
        return [entry.get("value") or ""]
    if source.get("fieldRef"):
        field = source["fieldRef"]
        value = _field_value(pod_obj, field["fieldPath"])
        return [f"{value} ({field.get('apiVersion') or 'v1'}:{field['fieldPath']})"]
    if source.get("resourceFieldRef"):
        resource = source["resourceFieldRef"]["resource"]
        return [f"{_resource_value(container, resource)} ({resource})"]
    for field_name, where in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        if source.get(field_name):
            key = source[field_name]
            optional = "true" if key.get("optional") else "false"
            return [
                f"<set to the key '{key['key']}' {where} '{key['name']}'>",
                f"Optional: {optional}",
            ]
    return [""]


def _field_value(pod_obj: Obj | None, path: str) -> str:
    """Name, namespace and uid, as kubectl: the rest is known to the node."""
    where, _, field = path.partition(".")
    value = pod_obj["metadata"].get(field) if pod_obj and where == "metadata" else None
    return value if isinstance(value, str) else ""


def _resource_value(container: Obj, resource: str) -> str:
    field, _, name = resource.partition(".")
    amount = ((container.get("resources") or {}).get(field) or {}).get(name)
    if amount is None:
        return "0" if field == "requests" else "node allocatable"
    return str(quantity.value_of(amount).value())


def _mounts(writer: Writer, container: Obj) -> None:
    mounts = sorted(container.get("volumeMounts") or [], key=lambda mount: mount["mountPath"])
    writer.line(2, "Mounts:", *([] if mounts else ["<none>"]))
    for mount in mounts:
        flags = ["ro" if mount.get("readOnly") else "rw"]
        if mount.get("subPath"):
            flags.append(f'path="{mount["subPath"]}"')
        writer.line(3, f"{mount['mountPath']} from {mount['name']} ({','.join(flags)})")
    devices = container.get("volumeDevices") or []
    if devices:
        writer.line(2, "Devices:")
        for device in sorted(devices, key=lambda item: item["devicePath"]):
            writer.line(3, f"{device['devicePath']} from {device['name']}")


def _conditions(writer: Writer, spec: Obj, status: Obj) -> None:
    gates = spec.get("readinessGates") or []
    known = {entry["type"]: entry.get("status") for entry in status.get("conditions") or []}
    if gates:
        writer.line(0, "Readiness Gates:\n  Type", "Status")
        for gate in gates:
            kind = gate["conditionType"]
            writer.line(1, f"{kind} ", f"{known.get(kind, '<none>')} ")
    if status.get("conditions"):
        writer.line(0, "Conditions:\n  Type", "Status")
        for condition in status["conditions"]:
            writer.line(1, f"{condition['type']} ", f"{condition.get('status')} ")


def _placement(writer: Writer, spec: Obj, space: str) -> None:
    pairs = spec.get("nodeSelector") or {}
    writer.many(f"{space}Node-Selectors:", [f"{key}={pairs[key]}" for key in sorted(pairs)])
    writer.many(f"{space}Tolerations:", tolerations(spec.get("tolerations") or []))


def _spreads(writer: Writer, spec: Obj, space: str) -> None:
    spreads = spec.get("topologySpreadConstraints") or []
    if not spreads:
        return
    texts = []
    for spread in sorted(spreads, key=lambda spread: str(spread["topologyKey"])):
        text = f"{spread['topologyKey']}:{spread['whenUnsatisfiable']}"
        text += f" when max skew {spread['maxSkew']} is exceeded"
        if spread.get("labelSelector") is not None:
            text += f" for selector {selector_text(spread['labelSelector'])}"
        texts.append(text)
    writer.many(f"{space}Topology Spread Constraints:", texts)


def tolerations(items: list[Obj]) -> list[str]:
    def key(toleration: Obj) -> str:
        return str(toleration.get("key") or "")

    texts = []
    for toleration in sorted(items, key=key):
        text = toleration.get("key") or ""
        if toleration.get("value"):
            text += f"={toleration['value']}"
        if toleration.get("effect"):
            text += f":{toleration['effect']}"
        if toleration.get("operator") == "Exists" and not toleration.get("value"):
            # Without key and effect `op=Exists` stands alone.
            text += " op=Exists" if text else "op=Exists"
        if toleration.get("tolerationSeconds") is not None:
            text += f" for {toleration['tolerationSeconds']}s"
        texts.append(text)
    return texts


def template_lines(writer: Writer, template: Obj) -> None:
    """What stands under `Pod Template:`."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = meta.get("labels") or {}
    pairs = [f"{key}={labels[key]}" for key in sorted(labels)]
    writer.line(1, "Labels:", pairs[0] if pairs else "<none>")
    for pair in pairs[1:]:
        writer.line(0, "", pair)
    annotations = meta.get("annotations") or {}
    if annotations:
        lead = "Annotations:"
        for key in sorted(annotations):
            writer.line(1 if lead else 0, lead, f"{key}: {annotations[key]}")
            lead = ""
    if spec.get("serviceAccountName"):
        writer.line(1, "Service Account:", spec["serviceAccountName"])
    for title, field in (("Init Containers", "initContainers"), ("Containers", "containers")):
        if spec.get(field):
            containers(writer, title, spec[field], {}, None, "  ")
    volume_lines(writer, spec.get("volumes"), "  ")
    _spreads(writer, spec, "  ")
    if spec.get("priorityClassName"):
        writer.line(1, "Priority Class Name:", spec["priorityClassName"])
    _placement(writer, spec, "  ")
