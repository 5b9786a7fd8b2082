"""Services as environment variables, as every container sees them. Pure.

Job: `NAME_SERVICE_HOST` and its relatives, for the services that a pod's namespace has.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, name_of, namespace_of


def service_variables(
    services: Iterable[Obj], namespace: str, *, service_links: bool
) -> dict[str, str]:
    """As upstream: the API server's own service always, the namespace's unless switched off.

    `services` are those of the namespace and of `default`; more do no harm.
    """
    chosen: dict[str, Obj] = {}
    for service in services:
        name, home = name_of(service), namespace_of(service)
        if not _has_address(service):
            continue
        if home == namespace and (service_links or (home, name) == ("default", "kubernetes")):
            chosen[name] = service
        elif (home, name) == ("default", "kubernetes"):
            chosen.setdefault(name, service)
    variables: dict[str, str] = {}
    for _, service in sorted(chosen.items()):
        variables |= _variables(service)
    return variables


def _has_address(service: Obj) -> bool:
    address = (service.get("spec") or {}).get("clusterIP")
    return bool(address) and address != "None"


def _variables(service: Obj) -> dict[str, str]:
    name = _upper(name_of(service))
    spec = service["spec"]
    address, ports = spec["clusterIP"], spec.get("ports") or []
    found = {f"{name}_SERVICE_HOST": address}
    if not ports:
        return found
    found[f"{name}_SERVICE_PORT"] = str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            found[f"{name}_SERVICE_PORT_{_upper(port['name'])}"] = str(port["port"])
    found[f"{name}_PORT"] = _url(address, ports[0])
    for port in ports:
        protocol = port.get("protocol") or "TCP"
        stem = f"{name}_PORT_{port['port']}_{protocol.upper()}"
        found |= {
            stem: _url(address, port),
            f"{stem}_PROTO": protocol.lower(),
            f"{stem}_PORT": str(port["port"]),
            f"{stem}_ADDR": address,
        }
    return found


def _url(address: str, port: Obj) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{(port.get('protocol') or 'TCP').lower()}://{host}:{port['port']}"


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
