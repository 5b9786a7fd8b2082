"""`expose`: a service for something that runs.

Job: selector, ports and protocol from the object or the flags; a Service from them.
"""

import re
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, labels_of
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values, decimal
from sampan.cli.objects import changing, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info
from sampan.cli.objects.overrides import overridden
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

KINDS = (
    ("", "Pod"), ("", "Service"), ("", "ReplicationController"), ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
)  # fmt: skip
LONGEST_NAME = 63


class _Asked:
    """The flags; what an object adds to them stays for those after it, as with kubectl."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.selector, self.labels = values.text("selector"), values.text("labels")
        self.port, self.ports = values.text("port"), ""


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values, typed=True)
    session.check_context()
    builder = Builder(session, continue_on_error=True).in_namespace().files(values)
    builder.typed = True
    builder.arguments(values.arguments)
    asked = _Asked(values)
    failures: list[Exception] = []
    for found in builder.do().visit():
        try:
            if isinstance(found, Exception):
                raise found
            service = _service(session, values, generate(asked, found), strategy)
        except (CliError, ApiError) as error:
            failures.append(error)
            continue
        label = f"service/{service['metadata']['name']}"
        if printer.format:
            session.write(printer.text(service, label))
        else:
            session.print(f"{label} exposed{common_flags.suffix(strategy)}")
    raise_all(failures)


def _service(session: Session, values: Values, service: Obj, strategy: str) -> Obj:
    """With overrides and notes; sent, unless it is only to be shown."""
    if values["overrides"]:
        service = overridden(service, values.text("overrides"), values.text("override-type"))
    service = writing.recorded(session, values, service)
    if strategy == "client":
        if session.namespace_is_given:
            service["metadata"]["namespace"] = session.namespace
        return service
    if values["save-config"]:
        note = {writing.LAST_APPLIED: writing.last_applied(service, typed=True)}
        service = writing.annotate(service, note)
    query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
    path = f"/api/v1/namespaces/{session.namespace}/services"
    return session.api.json("POST", path, query, body=service)


def generate(asked: _Asked, info: Info) -> Obj:
    resource, values = info.resource, asked.values
    if (resource.group, resource.kind) not in KINDS:
        raise CliError(
            f"cannot expose a {resource.kind}" + (f".{resource.group}" if resource.group else "")
        )
    if not asked.selector:
        asked.selector = _pairs_text(_selector(info))
    own = _own_ports(info.obj)
    if not asked.port:
        _choose_ports(asked, own)
    if not asked.labels:
        asked.labels = _pairs_text(labels_of(info.obj))
    if not asked.selector:
        raise CliError("selector must be specified")
    selector = _parsed(asked.selector)
    labels = _parsed(asked.labels) if asked.labels else {}
    name = values.text("name") or info.name[:LONGEST_NAME]
    if not name:
        raise CliError("name must be specified")
    meta: Obj = {"name": name, **({"labels": labels} if labels else {})}
    ports = _ports(asked, own)
    spec: Obj = {**({"ports": ports} if ports else {}), "selector": selector}
    _fill(spec, values)
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec,
        "status": {"loadBalancer": {}},
    }  # fmt: skip


def _choose_ports(asked: _Asked, own: list[tuple[int, str]]) -> None:
    numbers = list(dict.fromkeys(str(port) for port, _ in own))
    if not numbers and asked.values["cluster-ip"] != "None":
        raise CliError("couldn't find port via --port flag or introspection")
    if len(numbers) == 1:
        asked.port = numbers[0]
    elif numbers:
        asked.ports = ",".join(numbers)


def _fill(spec: Obj, values: Values) -> None:
    if values["external-ip"]:
        spec["externalIPs"] = [values["external-ip"]]
    if values["type"]:
        spec["type"] = values["type"]
    if values["type"] == "LoadBalancer" and values["load-balancer-ip"]:
        spec["loadBalancerIP"] = values["load-balancer-ip"]
    affinity = values.text("session-affinity")
    if affinity:
        if affinity not in ("None", "ClientIP"):
            raise CliError(f"unknown session affinity: {affinity}")
        spec["sessionAffinity"] = affinity
    if values["cluster-ip"]:
        spec["clusterIP"] = values["cluster-ip"]


def _pairs_text(labels: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _parsed(text: str) -> dict[str, str]:
    labels = {}
    for word in text.split(","):
        pair = word.split("=")
        if len(pair) != 2:
            raise CliError(f"unexpected label spec: {word}")
        if not pair[0]:
            raise CliError("unexpected empty label key")
        labels[pair[0]] = pair[1]
    return labels


def _selector(info: Info) -> dict[str, str]:
    obj, kind = info.obj, info.resource.kind
    start = "couldn't retrieve selectors via --selector flag or introspection: "
    if kind == "Pod":
        if not labels_of(obj):
            raise CliError(f"{start}the pod has no labels and cannot be exposed")
        return dict(labels_of(obj))
    selector = obj["spec"].get("selector") or {}
    if kind == "Service":
        if not selector:
            raise CliError(f"{start}the service has no pod selector set")
        return dict(selector)
    if kind == "ReplicationController":
        return dict(selector)
    if selector.get("matchExpressions"):
        entries = " ".join(
            f"{{Key:{entry['key']} Operator:{entry['operator']} "
            f"Values:[{' '.join(entry.get('values') or [])}]}}"
            for entry in selector["matchExpressions"]
        )
        raise CliError(
            f'{start}couldn\'t convert expressions - "[{entries}]" to map-based selector format'
        )
    return dict(selector.get("matchLabels") or {})


def _ports(asked: _Asked, own: list[tuple[int, str]]) -> list[Obj]:
    text = asked.ports or asked.port
    numbers = text.split(",") if text else []
    given, target = asked.values.text("protocol"), asked.values.text("target-port")
    ports: list[Obj] = []
    for index, number in enumerate(numbers, 1):
        try:
            port = decimal(number)
        except ValueError as error:
            raise CliError(str(error)) from error
        protocols = [] if given else [protocol for other, protocol in own if other == port]
        name = f"port-{index}" if len(numbers) > 1 else ""
        if len(protocols) < 2:
            protocols = [given or (protocols or ["TCP"])[0]]
        for protocol in protocols:
            if len(protocols) > 1:
                name = f"port-{index}-{protocol.lower()}"
            entry: Obj = {"name": name} if name else {}
            ports.append(
                {**entry, "protocol": protocol, "port": port, "targetPort": _target(target, port)}
            )
    return ports


def _target(text: str, port: int) -> int | str:
    if not text:
        return port
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else text


def _own_ports(obj: Obj) -> list[tuple[int, str]]:
    """Each port with each of its protocols, once."""
    if obj["kind"] == "Service":
        entries = [(entry["port"], entry) for entry in obj["spec"].get("ports") or []]
    else:
        spec = changing.pod_spec(obj) or {}
        entries = [
            (entry["containerPort"], entry)
            for container in spec.get("containers") or []
            for entry in container.get("ports") or []
        ]
    found = [(port, str(entry.get("protocol") or "TCP")) for port, entry in entries]
    return list(dict.fromkeys(found))


EXPOSE = Command(
    "expose",
    "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] [--target-port=number-or-name] [--name=name] [--external-ip=external-ip-of-service] [--type=type] [options]",
    "Expose a resource as a new Kubernetes service.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.DRY_RUN,
        common_flags.SAVE_CONFIG,
        common_flags.RECORD,
        common_flags.field_manager("kubectl-expose"),
        Flag("cluster-ip", usage="ClusterIP to be assigned to the service; 'None' for headless."),
        Flag("external-ip", usage="Additional external IP address to set for the service."),
        Flag("labels", short="l", usage="Labels to apply to the service."),
        Flag("load-balancer-ip", usage="IP to assign to the load balancer."),
        Flag("name", usage="The name for the newly created object."),
        Flag("override-type", default="merge", usage="How to override: json, merge, or strategic."),
        Flag("overrides", usage="An inline JSON override for the generated object."),
        Flag("port", usage="The port that the service should serve on."),
        Flag("protocol", usage="The network protocol for the service (default: the object's own)."),
        Flag("selector", usage="A label selector to use for this service."),
        Flag("session-affinity", usage="None or ClientIP."),
        Flag("target-port", usage="Name or number of the container's port."),
        Flag("type", usage="ClusterIP, NodePort, LoadBalancer, or ExternalName."),
    ),
)
