"""The variables by which containers find services without DNS.

Job: services → environment variables, as upstream names them. Pure.
Invariant: the API's own service is always there; those of the pod's namespace by its choice.
"""

from collections.abc import Awaitable, Callable, Iterable

from sampan.api.objects import Obj, name_of, namespace_of
from sampan.kubelet.spec import spec_of

Services = Callable[[], Awaitable[Iterable[Obj]]]
MASTER_NAMESPACE, MASTER_NAME = "default", "kubernetes"


def service_variables(pod: Obj, services: Iterable[Obj]) -> dict[str, str]:
    """`services` may hold more than the pod's namespace; a service of its own namespace goes before
    the API's of the same name."""
    linked = spec_of(pod).get("enableServiceLinks") is not False
    chosen: dict[str, Obj] = {}
    for service in services:
        if not _has_address(service):
            continue
        name, namespace = name_of(service), namespace_of(service)
        if linked and namespace == namespace_of(pod):
            chosen[name] = service
        elif (namespace, name) == (MASTER_NAMESPACE, MASTER_NAME):
            chosen.setdefault(name, service)
    variables: dict[str, str] = {}
    for name in sorted(chosen):
        variables |= _variables(chosen[name])
    return variables


def _has_address(service: Obj) -> bool:
    return spec_of(service).get("clusterIP") not in (None, "", "None")


def _variables(service: Obj) -> dict[str, str]:
    name, spec = _upper(name_of(service)), spec_of(service)
    address, ports = str(spec["clusterIP"]), spec.get("ports") or []
    if not ports:
        return {}
    variables = {
        f"{name}_SERVICE_HOST": address,
        f"{name}_SERVICE_PORT": str(ports[0]["port"]),
    }
    for port in ports:
        if port.get("name"):
            variables[f"{name}_SERVICE_PORT_{_upper(port['name'])}"] = str(port["port"])
    for number, port in enumerate(ports):
        variables |= _link(name, address, port, first=number == 0)
    return variables


def _link(name: str, address: str, port: Obj, *, first: bool) -> dict[str, str]:
    """As Docker's links named them."""
    protocol, number = str(port.get("protocol") or "TCP"), port["port"]
    host = f"[{address}]" if ":" in address else address
    url = f"{protocol.lower()}://{host}:{number}"
    prefix = f"{name}_PORT_{number}_{protocol.upper()}"
    variables = {f"{name}_PORT": url} if first else {}
    return variables | {
        prefix: url,
        f"{prefix}_PROTO": protocol.lower(),
        f"{prefix}_PORT": str(number),
        f"{prefix}_ADDR": address,
    }


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
