"""Where a service can be reached from the API server. Pure.

Job: a service and its endpoint slices → one address and port.
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
        return endpoint_of(namespace, name, port, service, find_in(ENDPOINT_SLICES, namespace))

    return resolve


def endpoint_of(
    namespace: str, name: str, port: int, service: Obj | None, slices: Iterable[Obj]
) -> tuple[str, int]:
    """A ready endpoint behind the service's port. Raises CallFailed."""
    if service is None:
        raise CallFailed(f'service "{name}" not found')
    spec = spec_of(service)
    found = next((item for item in spec.get("ports") or () if item.get("port") == port), None)
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or ""), port
    if found is None:
        raise CallFailed(f'no service port {port} found for service "{name}"')
    for slice_ in slices:
        target = _port(slice_, found) if labels_of(slice_).get(_OF_SERVICE) == name else None
        address = next(_ready_addresses(slice_), "") if target else ""
        if target and address:
            return address, target
    raise CallFailed(f'no endpoints available for service "{name}"')


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
