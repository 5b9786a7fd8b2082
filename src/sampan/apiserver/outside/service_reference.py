"""Service references of webhooks and APIServices: where they are reached. Pure.

Job: a service and its endpoint slices → the addresses and ports that are ready.
"""

from collections.abc import Callable, Iterable, Iterator

from sampan.api.objects import Obj, labels_of, spec_of
from sampan.api.resources import ENDPOINT_SLICES, SERVICES, Resource
from sampan.apiserver.outside.configured_callers import Resolve
from sampan.apiserver.outside.webhook_client import CallFailed

Find = Callable[[Resource, str, str], Obj | None]
FindIn = Callable[[Resource, str], Iterable[Obj]]  # all of a kind in a namespace
_OF_SERVICE = "kubernetes.io/service-name"


def resolver(find: Find, find_in: FindIn) -> Resolve:
    def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        service = find(SERVICES, namespace, name)
        return endpoints_of(name, port, service, find_in(ENDPOINT_SLICES, namespace))[0]

    return resolve


def endpoints_of(
    name: str, port: int, service: Obj | None, slices: Iterable[Obj]
) -> list[tuple[str, int]]:
    """Every ready endpoint behind the service's port, at least one. Raises CallFailed."""
    if service is None:
        raise CallFailed(f'service "{name}" not found')
    spec = spec_of(service)
    if spec.get("type") == "ExternalName":
        return [(str(spec.get("externalName") or ""), port)]
    wanted = next((item for item in spec.get("ports") or () if item.get("port") == port), None)
    if wanted is None:
        raise CallFailed(f'no service port {port} found for service "{name}"')
    found = [
        (address, target)
        for part in slices
        if labels_of(part).get(_OF_SERVICE) == name and (target := _port(part, wanted))
        for address in _ready_addresses(part)
    ]
    if not found:
        raise CallFailed(f'no endpoints available for service "{name}"')
    return found


def _ready_addresses(endpoint_slice: Obj) -> Iterator[str]:
    for endpoint in endpoint_slice.get("endpoints") or ():
        ready = (endpoint.get("conditions") or {}).get("ready", True)
        if ready is not False and endpoint.get("addresses"):
            yield str(endpoint["addresses"][0])


def _port(endpoint_slice: Obj, wanted: Obj) -> int:
    """By name, as endpoints carry it; a service with one port needs none."""
    ports = endpoint_slice.get("ports") or ()
    name = wanted.get("name") or ""
    return next((int(port["port"]) for port in ports if (port.get("name") or "") == name), 0)
