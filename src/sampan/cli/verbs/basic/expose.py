"""`expose`: a service for something that runs.

Job: selector, ports and protocol from the object or the flags; a Service from them.
"""

from sampan.api.objects import Obj, labels_of
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values, decimal
from sampan.cli.objects import changing, writing
from sampan.cli.objects.infos import Info
from sampan.cli.objects.overrides import overridden
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.verbs.basic.run import parsed_labels
from sampan.core.digits import is_digits

KINDS = ("Pod", "Service", "ReplicationController", "Deployment", "ReplicaSet")


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values, typed=True)
    failures: list[Exception] = []
    for found in changing.select(session, values, values.arguments):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        service = generate(values, found)
        if values["overrides"]:
            service = overridden(service, values.text("overrides"), values.text("override-type"))
        service["metadata"]["namespace"] = session.namespace
        if strategy != "client":
            query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
            path = f"/api/v1/namespaces/{session.namespace}/services"
            service = session.api.json("POST", path, query, body=service)
        label = f"service/{service['metadata']['name']}"
        if printer.format:
            session.write(printer.text(service, label))
        else:
            session.print(f"{label} exposed{common_flags.suffix(strategy)}")
    if failures:
        raise Several(failures)


def generate(values: Values, info: Info) -> Obj:
    if info.resource.kind not in KINDS:
        raise CliError(f"cannot expose a {info.resource.kind}")
    obj = info.obj
    selector = parsed_labels(values.text("selector")) if values["selector"] else _selector(info)
    ports = _ports(values, obj)
    labels = parsed_labels(values.text("labels")) if values["labels"] else labels_of(obj)
    meta: Obj = {"name": values["name"] or info.name}
    if labels:
        meta["labels"] = dict(labels)
    spec: Obj = {"ports": ports, "selector": selector}
    for flag, field in (
        ("type", "type"), ("cluster-ip", "clusterIP"), ("load-balancer-ip", "loadBalancerIP"),
    ):  # fmt: skip
        if values[flag]:
            spec[field] = values[flag]
    if values["external-ip"]:
        spec["externalIPs"] = [values["external-ip"]]
    affinity = values.text("session-affinity")
    if affinity:
        if affinity not in ("None", "ClientIP"):
            raise CliError(f"unknown session affinity: {affinity}")
        spec["sessionAffinity"] = affinity
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec,
        "status": {"loadBalancer": {}},
    }  # fmt: skip


def _selector(info: Info) -> dict[str, str]:
    obj, kind = info.obj, info.resource.kind
    start = "couldn't retrieve selectors via --selector flag or introspection: "
    if kind == "Pod":
        if not labels_of(obj):
            raise CliError(f"{start}the pod has no labels and cannot be exposed")
        return dict(labels_of(obj))
    selector = obj["spec"].get("selector") or {}
    if kind in ("Service", "ReplicationController"):
        if not selector:
            raise CliError(f"{start}the {kind.lower()} has no pod selector set")
        return dict(selector)
    if selector.get("matchExpressions"):
        raise CliError(f"{start}couldn't convert expressions to map-based selector format")
    return dict(selector.get("matchLabels") or {})


def _ports(values: Values, obj: Obj) -> list[Obj]:
    own = _own_ports(obj)
    text = values.text("port")
    numbers = text.split(",") if text else list(dict.fromkeys(str(port) for port, _ in own))
    if not numbers:
        raise CliError("couldn't find port via --port flag or introspection")
    protocols = dict(own)
    target = values.text("target-port")
    ports = []
    for index, number in enumerate(numbers, 1):
        try:
            port = decimal(number)
        except ValueError as error:
            raise CliError(str(error)) from error
        protocol = values.text("protocol") or protocols.get(port) or "TCP"
        entry: Obj = {"name": f"port-{index}"} if len(numbers) > 1 else {}
        entry |= {"protocol": protocol, "port": port, "targetPort": _target(target, port)}
        ports.append(entry)
    return ports


def _target(text: str, port: int) -> int | str:
    if not text:
        return port
    return int(text) if is_digits(text) else text


def _own_ports(obj: Obj) -> list[tuple[int, str]]:
    if obj["kind"] == "Service":
        entries = obj["spec"].get("ports") or []
        return [(entry["port"], entry.get("protocol", "TCP")) for entry in entries]
    spec = changing.pod_spec(obj) or {}
    return [
        (entry["containerPort"], entry.get("protocol", "TCP"))
        for container in spec.get("containers") or []
        for entry in container.get("ports") or []
    ]


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
