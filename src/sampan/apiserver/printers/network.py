"""Table rows of services, endpoints, ingresses and network policies.

Job: cells of the networking and discovery kinds. Pure.
"""

from typing import Any

from sampan.api.objects import Obj, name_of, spec_of, status_of
from sampan.apiserver.printers.layout import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Printer,
    age,
    columns,
    labels_text,
    list_text,
    selector_text,
    wide,
)

_MOST_HOSTS = 3


def _service(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    addresses = spec.get("clusterIPs") or ()
    ports = ",".join(_service_port(port) for port in spec.get("ports") or ())
    return [
        name_of(obj), spec.get("type") or "", addresses[0] if addresses else NONE,
        _external_address(obj), ports or NONE, age(obj, now), labels_text(spec.get("selector")),
    ]  # fmt: skip


def _service_port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol')}"


def _external_address(obj: Obj) -> str:
    spec = spec_of(obj)
    external: list[str] = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            return ",".join([*_balancer_addresses(obj), *external]) or "<pending>"
        case "ExternalName":
            return spec.get("externalName") or ""
    return UNKNOWN


def _balancer_addresses(obj: Obj) -> list[str]:
    entries = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""})


def _endpoints(obj: Obj, now: float) -> list[Any]:
    subsets = obj.get("subsets") or ()
    found = [text for subset in subsets for text in _subset(subset)]
    return [name_of(obj), list_text(found) if subsets else NONE, age(obj, now)]


def _subset(subset: Obj) -> list[str]:
    addresses = [item.get("ip") or "" for item in subset.get("addresses") or ()]
    ports = [item.get("port") for item in subset.get("ports") or ()]
    if not ports:
        return addresses
    return [f"{_in_brackets(address)}:{port}" for port in ports for address in addresses]


def _in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _endpoint_slice(obj: Obj, now: float) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [
        address
        for endpoint in obj.get("endpoints") or ()
        for address in endpoint.get("addresses") or ()
    ]
    return [
        name_of(obj), obj.get("addressType") or "", list_text(ports) or UNSET,
        list_text(addresses) or UNSET, age(obj, now),
    ]  # fmt: skip


def _ingress(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj), spec.get("ingressClassName") or NONE, _hosts(spec.get("rules") or []),
        ",".join(_balancer_addresses(obj)), "80, 443" if spec.get("tls") else "80", age(obj, now),
    ]  # fmt: skip


def _hosts(rules: list[Obj]) -> str:
    places = [index for index, rule in enumerate(rules) if rule.get("host")][:_MOST_HOSTS]
    if not places:
        return "*"
    text = ",".join(rules[index]["host"] for index in places)
    # Upstream counts rules, not hosts, once three hosts are shown.
    more = len(places) == _MOST_HOSTS and places[-1] < len(rules) - 1
    return f"{text} + {len(rules) - _MOST_HOSTS} more..." if more else text


def _ingress_class(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    given, shown = spec.get("parameters"), NONE
    if given:
        group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
        shown = f"{given.get('kind')}{group}/{given.get('name')}"
    return [name_of(obj), spec.get("controller") or "", shown, age(obj, now)]


def _network_policy(obj: Obj, now: float) -> list[Any]:
    selector = spec_of(obj).get("podSelector") or {}
    return [name_of(obj), selector_text(selector), age(obj, now)]


def _ip_address(obj: Obj, now: float) -> list[Any]:
    parent, shown = spec_of(obj).get("parentRef"), NONE
    if parent:
        group = f".{parent['group']}" if parent.get("group") else ""
        where = f"{parent['namespace']}/" if parent.get("namespace") else ""
        shown = f"{parent.get('resource')}{group}/{where}{parent.get('name')}"
    return [name_of(obj), shown, age(obj, now)]


def _service_cidr(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), ",".join(spec_of(obj).get("cidrs") or ()), age(obj, now)]


SERVICES = Printer(
    (*columns(NAME, "Type", "Cluster-IP", "External-IP", "Port(s)", AGE), *wide("Selector")),
    _service,
)
ENDPOINTS = Printer(columns(NAME, "Endpoints", AGE), _endpoints)
ENDPOINT_SLICES = Printer(columns(NAME, "AddressType", "Ports", "Endpoints", AGE), _endpoint_slice)
INGRESSES = Printer(columns(NAME, "Class", "Hosts", "Address", "Ports", AGE), _ingress)
INGRESS_CLASSES = Printer(columns(NAME, "Controller", "Parameters", AGE), _ingress_class)
NETWORK_POLICIES = Printer(columns(NAME, "Pod-Selector", AGE), _network_policy)
# As upstream: the last cell, its age, has no column.
IP_ADDRESSES = Printer(columns(NAME, "ParentRef"), _ip_address)
SERVICE_CIDRS = Printer(columns(NAME, "CIDRs", AGE), _service_cidr)
