"""Services, endpoints, ingresses, network policies, described.

Job: addresses, ports and who may talk to whom.
"""

from sampan.api.objects import Obj, labels_of
from sampan.api.rules.endpoint_slices import ready_endpoints
from sampan.cli.describe.cluster import dated_conditions
from sampan.cli.describe.writer import Writer, pairs_text, selector_text

_SERVICE_ADDRESSES = (
    ("External IPs:", "externalIPs"),
    ("Desired LoadBalancer IP:", "loadBalancerIP"),
    ("External Name:", "externalName"),
)
_SERVICE_POLICIES = (
    ("External Traffic Policy:", "externalTrafficPolicy"),
    ("Internal Traffic Policy:", "internalTrafficPolicy"),
    ("HealthCheck NodePort:", "healthCheckNodePort"),
    ("LoadBalancer Source Ranges:", "loadBalancerSourceRanges"),
    ("Traffic Distribution:", "trafficDistribution"),
)


def service(writer: Writer, obj: Obj, slices: list[Obj]) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.head(obj)
    writer.line(0, "Selector:", pairs_text(spec.get("selector")))
    writer.line(0, "Type:", spec.get("type") or "")
    _write_fields(writer, spec, (("IP Family Policy:", "ipFamilyPolicy"),))
    writer.line(0, "IP Families:", ",".join(spec.get("ipFamilies") or []) or "<none>")
    writer.line(0, "IP:", spec.get("clusterIP") or "")
    writer.line(0, "IPs:", ",".join(spec.get("clusterIPs") or []) or "<none>")
    _write_fields(writer, spec, _SERVICE_ADDRESSES)
    _write_balancer(writer, status)
    for port in spec.get("ports") or []:
        _port(writer, port, slices)
    writer.line(0, "Session Affinity:", spec.get("sessionAffinity") or "")
    _write_fields(writer, spec, _SERVICE_POLICIES)


def _write_fields(writer: Writer, spec: Obj, titles: tuple[tuple[str, str], ...]) -> None:
    """A line for each field that says something; a list with commas."""
    for title, field in titles:
        value = spec.get(field)
        if value:
            writer.line(0, title, ",".join(value) if isinstance(value, list) else value)


def _write_balancer(writer: Writer, status: Obj) -> None:
    items = (status.get("loadBalancer") or {}).get("ingress") or []
    if items:
        addresses = ", ".join(
            f"{item['ip']} ({item['ipMode']})"
            if item.get("ip") and item.get("ipMode")
            else item.get("ip") or item.get("hostname") or ""
            for item in items
        )
        writer.line(0, "LoadBalancer Ingress:", addresses)


def _port(writer: Writer, port: Obj, slices: list[Obj]) -> None:
    name, protocol = port.get("name") or "<unset>", port.get("protocol") or "TCP"
    writer.line(0, "Port:", name, f"{port['port']}/{protocol}")
    writer.line(0, "TargetPort:", f"{port.get('targetPort')}/{protocol}")
    if port.get("appProtocol"):
        writer.line(0, "AppProtocol:", port["appProtocol"])
    if port.get("nodePort"):
        writer.line(0, "NodePort:", name, f"{port['nodePort']}/{protocol}")
    writer.line(0, "Endpoints:", endpoints_text(slices, port.get("name") or ""))


def endpoints_text(slices: list[Obj], name: str) -> str:
    if not slices:
        return "<none>"
    found: list[str] = []
    for slice_ in slices:
        for port in slice_.get("ports") or []:
            if (port.get("name") or "") != name:
                continue
            for endpoint in ready_endpoints(slice_):
                found += [f"{address}:{port.get('port')}" for address in endpoint["addresses"]]
    if len(found) > 3:
        return ",".join(found[:3]) + f" + {len(found) - 3} more..."
    return ",".join(found)


def endpoints(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    writer.line(0, "Subsets:")
    for subset in obj.get("subsets") or []:
        for title, field in (
            ("Addresses:", "addresses"),
            ("NotReadyAddresses:", "notReadyAddresses"),
        ):
            addresses = ",".join(item["ip"] for item in subset.get(field) or [])
            writer.line(1, title, addresses or "<none>")
        if subset.get("ports"):
            writer.line(1, "Ports:")
            writer.line(2, "Name", "Port", "Protocol")
            writer.line(2, "----", "----", "--------")
            for port in subset["ports"]:
                writer.line(2, port.get("name") or "<unset>", port["port"], port.get("protocol"))
        writer.line(0, "")


def endpoint_slice(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    writer.line(0, "AddressType:", obj["addressType"])
    ports = obj.get("ports") or []
    writer.line(0, "Ports:" if ports else "Ports: <unset>")
    if ports:
        writer.line(1, "Name", "Port", "Protocol")
        writer.line(1, "----", "----", "--------")
        for port in ports:
            writer.line(1, port.get("name") or "<unset>", port.get("port"), port.get("protocol"))
    items = obj.get("endpoints") or []
    writer.line(0, "Endpoints:" if items else "Endpoints: <none>")
    for endpoint in items:
        _write_endpoint(writer, endpoint)


def _write_endpoint(writer: Writer, endpoint: Obj) -> None:
    writer.line(1, "- Addresses:", ", ".join(endpoint["addresses"]))
    writer.line(2, "Conditions:")
    state = (endpoint.get("conditions") or {}).get("ready")
    writer.line(3, "Ready:", "<unset>" if state is None else "true" if state else "false")
    writer.line(2, "Hostname:", endpoint.get("hostname") or "<unset>")
    reference = endpoint.get("targetRef")
    if reference:
        writer.line(2, "TargetRef:", f"{reference['kind']}/{reference['name']}")
    writer.line(2, "NodeName:", endpoint.get("nodeName") or "<unset>")
    writer.line(2, "Zone:", endpoint.get("zone") or "<unset>")


def ingress(writer: Writer, obj: Obj, backends: dict[str, str]) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    meta = obj["metadata"]
    writer.line(0, "Name:", meta["name"])
    writer.labels("Labels:", labels_of(obj))
    writer.line(0, "Namespace:", meta["namespace"])
    addresses = [
        item.get("ip") or item.get("hostname") or ""
        for item in (status.get("loadBalancer") or {}).get("ingress") or []
    ]
    writer.line(0, "Address:", ",".join(addresses))
    writer.line(0, "Ingress Class:", spec.get("ingressClassName") or "<none>")
    default = spec.get("defaultBackend")
    otherwise = _backend(default, backends) if default else "<default>"
    writer.line(0, "Default backend:", otherwise)
    _write_tls(writer, spec.get("tls") or [])
    rules = [rule for rule in spec.get("rules") or [] if rule.get("http") is not None]
    _write_rules(writer, rules, backends)
    if not rules:
        writer.line(1, "*", "*", otherwise)
    writer.annotations(obj)


def _write_tls(writer: Writer, entries: list[Obj]) -> None:
    if entries:
        writer.line(0, "TLS:")
    for entry in entries:
        hosts = ",".join(entry.get("hosts") or [])
        secret = entry.get("secretName")
        writer.line(1, f"{secret} terminates {hosts}" if secret else f"SNI routes {hosts}")


def _write_rules(writer: Writer, rules: list[Obj], backends: dict[str, str]) -> None:
    writer.line(0, "Rules:\n  Host", "Path", "Backends")
    writer.line(1, "----", "----", "--------")
    for rule in rules:
        writer.line(1, rule.get("host") or "*", "")
        for path in rule["http"]["paths"]:
            writer.line(
                0, "    ", f"{path.get('path') or ''} ", f"{_backend(path['backend'], backends)}"
            )


def service_of(backend: Obj) -> tuple[str, str]:
    """The service's name and its port, by number or name; nothing for another kind of backend."""
    own = backend.get("service") or {}
    port = own.get("port") or {}
    return own.get("name") or "", str(port.get("number") or port.get("name") or "")


def _backend(backend: Obj, backends: dict[str, str]) -> str:
    other = backend.get("resource")
    if other:
        group = "<none>" if other.get("apiGroup") is None else other["apiGroup"]
        return f"APIGroup: {group}, Kind: {other['kind']}, Name: {other['name']}"
    key = ":".join(service_of(backend))
    return f"{key} ({backends.get(key, '')})"


def network_policy(writer: Writer, obj: Obj, now: float) -> None:
    spec, meta = obj["spec"], obj["metadata"]
    writer.line(0, "Name:", meta["name"])
    writer.line(0, "Namespace:", meta["namespace"])
    writer.line(0, "Created on:", _create(meta))
    writer.labels("Labels:", labels_of(obj))
    writer.annotations(obj)
    writer.flush()
    writer.line(0, "Spec:")
    selector = selector_text(spec.get("podSelector"))
    everything = "<none> (Allowing the specific traffic to all pods in this namespace)"
    writer.line(1, f"PodSelector:     {everything if selector == '<none>' else selector}")
    types = spec.get("policyTypes") or []
    _direction(writer, spec, "ingress", "from")
    _direction(writer, spec, "egress", "to")
    writer.line(1, f"Policy Types: {', '.join(types)}")


def _create(meta: Obj) -> str:
    text = str(meta.get("creationTimestamp") or "")
    return text.replace("T", " ").replace("Z", " +0000 UTC")


def _direction(writer: Writer, spec: Obj, word: str, field: str) -> None:
    rules: list[Obj] = spec.get(word) or []
    peers = field.title()
    if word.title() not in (spec.get("policyTypes") or []):
        writer.line(1, f"Not affecting {word} traffic")
        return
    writer.line(1, f"Allowing {word} traffic:")
    if not rules:
        writer.line(2, f"<none> (Selected pods are isolated for {word} connectivity)")
        return
    for index, rule in enumerate(rules):
        if not rule.get("ports"):
            writer.line(2, "To Port: <any> (traffic allowed to all ports)")
        for port in rule.get("ports") or []:
            writer.line(2, _allowed_port(port))
        if not rule.get(field):
            scope = (
                "traffic not restricted by source"
                if field == "from"
                else "traffic not restricted by destination"
            )
            writer.line(2, f"{peers}: <any> ({scope})")
        for peer in rule.get(field) or []:
            writer.line(2, f"{peers}:")
            _peer(writer, peer)
        if index < len(rules) - 1:
            writer.line(2, "----------")


def _allowed_port(port: Obj) -> str:
    first, protocol = port.get("port", "<any>"), port.get("protocol") or "TCP"
    if port.get("endPort") is None:
        return f"To Port: {first}/{protocol}"
    return f"To Port Range: {first}-{port['endPort']}/{protocol}"


def _peer(writer: Writer, peer: Obj) -> None:
    if peer.get("namespaceSelector") is not None:
        writer.line(3, f"NamespaceSelector: {selector_text(peer['namespaceSelector'])}")
    if peer.get("podSelector") is not None:
        writer.line(3, f"PodSelector: {selector_text(peer['podSelector'])}")
    if peer.get("ipBlock"):
        writer.line(3, "IPBlock:")
        writer.line(4, f"CIDR: {peer['ipBlock']['cidr']}")
        writer.line(4, f"Except: {', '.join(peer['ipBlock'].get('except') or [])}")


def ingress_class(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj, namespaced=False)
    writer.line(0, "Controller:", obj["spec"].get("controller") or "")
    parameters = obj["spec"].get("parameters")
    if parameters:
        writer.line(0, "Parameters:")
        if parameters.get("apiGroup") is not None:
            writer.line(1, "APIGroup:", parameters["apiGroup"])
        writer.line(1, "Kind:", parameters["kind"])
        writer.line(1, "Name:", parameters["name"])


def service_cidr(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj, namespaced=False)
    writer.line(0, "CIDRs:", ", ".join(obj["spec"].get("cidrs") or []))
    conditions = (obj.get("status") or {}).get("conditions") or []
    if conditions:
        writer.line(0, "Status:")
        dated_conditions(writer, conditions)


def ip_address(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj, namespaced=False)
    parent = obj["spec"].get("parentRef")
    if parent:
        writer.line(0, "Parent Reference:")
        for title, field in (
            ("Group:", "group"), ("Resource:", "resource"), ("Namespace:", "namespace"),
            ("Name:", "name"),
        ):  # fmt: skip
            writer.line(1, title, parent.get(field) or "")
