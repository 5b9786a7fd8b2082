"""create service clusterip, nodeport, loadbalancer, externalname; create ingress.

Job: ports, hosts and paths from the command line.
"""

import re

from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.create.generator import Kind, generator
from sampan.cli.create.parts import metadata, single_name
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.core.patterns import lazy_pattern

TCP = Flag("tcp", "slice", [], "Port pairs: '<port>:<targetPort>'.")


def _ports(values: Values, *, required: bool) -> list[Obj]:
    if required and not values["tcp"]:
        raise CliError("at least one tcp port specifier must be provided")
    ports = []
    for text in values["tcp"]:
        port, target = parsed_pair(text)
        ports.append(
            {
                "name": text.replace(":", "-"),
                "port": port,
                "protocol": "TCP",
                "targetPort": target,
            }
        )
    return ports


def parsed_pair(text: str) -> tuple[int, int | str]:
    parts = text.split(":")
    port = _unsigned_number(parts[0])
    if len(parts) == 1:
        return port, port
    target = parts[1]
    if re.fullmatch(r"[0-9]+", target):
        if not 1 <= int(target) <= 65535:
            raise CliError("must be between 1 and 65535, inclusive")
        return port, int(target)
    complaints = _port_name_complaints(target)
    if complaints:
        raise CliError(",".join(complaints))
    return port, target


def _unsigned_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text):
        raise CliError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) > 65535:
        raise CliError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _port_name_complaints(name: str) -> list[str]:
    found = []
    if len(name) > 15:
        found.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
        return found
    if not re.search(r"[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def _service(name: str, kind: str, spec: Obj) -> Obj:
    labels = {"app": name}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, labels),
        "spec": {"type": kind, "selector": dict(labels), **spec},
        "status": {"loadBalancer": {}},
    }


def cluster_ip(session: Session, values: Values) -> Obj:
    name = single_name(values)
    address = values.text("clusterip")
    ports = _ports(values, required=address != "None")
    spec: Obj = {"ports": ports} if ports else {}
    if address:
        spec["clusterIP"] = address
    return _service(name, "ClusterIP", spec)


def node_port(session: Session, values: Values) -> Obj:
    name = single_name(values)
    ports = _ports(values, required=True)
    if values["node-port"]:
        ports = [{**port, "nodePort": values["node-port"]} for port in ports]
    return _service(name, "NodePort", {"ports": ports})


def load_balancer(session: Session, values: Values) -> Obj:
    return _service(single_name(values), "LoadBalancer", {"ports": _ports(values, required=True)})


def external_name(session: Session, values: Values) -> Obj:
    name, host = single_name(values), values.text("external-name")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", host):
        raise CliError(f"invalid service external name {host}")
    ports = _ports(values, required=False)
    return _service(
        name, "ExternalName", {"externalName": host, **({"ports": ports} if ports else {})}
    )


SERVICE = Command(
    "service",
    "create service [flags] [options]",
    "Create a service using a specified subcommand",
    children=(
        generator("clusterip", "service clusterip NAME [--tcp=<port>:<targetPort>] [--dry-run=server|client|none] [options]",
                  "Create a ClusterIP service", cluster_ip,
                  Kind("services", "ClusterIP service"),
                  (TCP, Flag("clusterip", usage="Assign your own ClusterIP or set to 'None' for headless."))),
        generator("externalname", "service externalname NAME --external-name external.name [--dry-run=server|client|none] [options]",
                  "Create an ExternalName service", external_name,
                  Kind("services", "ExternalName service"),
                  (TCP, Flag("external-name", usage="External name of service.", required=True))),
        generator("loadbalancer", "service loadbalancer NAME [--tcp=port:targetPort] [--dry-run=server|client|none] [options]",
                  "Create a LoadBalancer service", load_balancer,
                  Kind("services", "LoadBalancer service"), (TCP,)),
        generator("nodeport", "service nodeport NAME [--tcp=port:targetPort] [--dry-run=server|client|none] [options]",
                  "Create a NodePort service", node_port,
                  Kind("services", "NodePort service"),
                  (TCP, Flag("node-port", "int", 0, "Port used to expose the service on each node."))),
    ),
    aliases=("svc",),
)  # fmt: skip


RULE = lazy_pattern(r"[\w*\-.]*/.*=[\w\-]+:[\w\-]+(,tls=?([\w\-]+)?)?", re.ASCII)


def ingress(session: Session, values: Values) -> Obj:
    name = single_name(values)
    rules, backend = values["rule"], values.text("default-backend")
    if not rules and not backend:
        raise CliError(
            "not enough information provided: every ingress has to either specify a "
            "default-backend (which catches all traffic) or a list of rules (which catch specific "
            "paths)"
        )
    for rule in rules:
        if not RULE.match(rule):
            raise CliError(
                f"rule {rule} is invalid and should be in format "
                "host/path=svcname:svcport[,tls[=secret]]"
            )
    annotations = {}
    for pair in values["annotation"]:
        key, equals, value = pair.partition("=")
        if not equals:
            raise CliError(f"annotation {pair} is invalid and should be in format key=[value]")
        annotations[key] = value
    if backend and backend.count(":") != 1:
        raise CliError("default-backend should be in format servicename:serviceport")
    spec: Obj = {}
    if values["class"]:
        spec["ingressClassName"] = values["class"]
    if backend:
        spec["defaultBackend"] = _backend(*backend.split(":"))
    parsed = [_rule(rule) for rule in rules]
    if parsed:
        spec["rules"] = _rules(parsed)
    tls = _tls(parsed)
    if tls:
        spec["tls"] = tls
    meta = metadata(name)
    if annotations:
        meta["annotations"] = annotations
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": meta,
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def _backend(service: str, port: str) -> Obj:
    number: Obj = {"name": port}
    if re.fullmatch(r"[0-9]+", port):
        number = {"number": int(port)} if int(port) else {}
    return {"service": {"name": service, "port": number}}


def _rule(text: str) -> tuple[str, Obj, str | None]:
    """Host, path, and the secret of its TLS (empty: none; None: no TLS)."""
    first, *more = text.split(",")
    host, _, rest = first.partition("/")
    path, _, backend = rest.partition("=")
    service, port = backend.split(":")[:2]
    path, kind = f"/{path}", "Exact"
    if path.endswith("*"):
        path, kind = path[:-1], "Prefix"
    secret = None
    if len(more) == 1:
        secret = more[0].split("=")[1] if "=" in more[0] else ""
    return host, {"path": path, "pathType": kind, "backend": _backend(service, port)}, secret


def _rules(parsed: list[tuple[str, Obj, str | None]]) -> list[Obj]:
    hosts: dict[str, list[Obj]] = {}
    for host, path, _ in parsed:
        hosts.setdefault(host, []).append(path)
    return [
        {**({"host": host} if host else {}), "http": {"paths": paths}}
        for host, paths in hosts.items()
    ]


def _tls(parsed: list[tuple[str, Obj, str | None]]) -> list[Obj]:
    """Each host once, with the first secret that is given for it."""
    secrets: dict[str, list[str]] = {}
    seen: set[str] = set()
    for host, _, secret in parsed:
        if secret is None or host in seen:
            continue
        seen.add(host)
        if secret in secrets:
            secrets[secret].append(host)
        elif secret or host:
            secrets[secret] = [host] if host else []
    return [
        {
            **({"hosts": hosts} if hosts else {}),
            **({"secretName": secret} if secret else {}),
        }
        for secret, hosts in secrets.items()
    ]


INGRESS = generator(
    "ingress",
    "ingress NAME --rule=host/path=service:port[,tls[=secret]]  [options]",
    "Create an ingress with the specified name",
    ingress,
    Kind("ingresses", "ingress", "networking.k8s.io", aliases=("ing",)),
    (
        Flag("annotation", "array", [], "Annotation to insert in the ingress object (key=value)."),
        Flag("class", usage="Ingress class to be used."),
        Flag("default-backend", usage="Default service for backend, in format of svcname:port."),
        Flag("rule", "array", [], "Rule in format host/path=service:port[,tls=secretname]."),
    ),
)
