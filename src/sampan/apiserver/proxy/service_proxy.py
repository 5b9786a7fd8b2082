"""From a service to one of its endpoints, for services/proxy.

Job: which address and port is meant by NAME, NAME:PORT or SCHEME:NAME:PORT. Pure, given a Random.
Invariant: only the addresses of pods are reached: an endpoint that somebody wrote by hand could
    point at anything that this server can reach and its caller cannot.
Invariant: they are pods of the service's own namespace, whatever an endpoint says of its target.
"""

import random
from collections.abc import Callable, Iterable

from sampan.api.errors import ServiceUnavailable
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.core.digits import is_digits
from sampan.core.http.origin import Origin

SERVICE_NAME = "kubernetes.io/service-name"  # an endpoint slice's label

FindPod = Callable[[str, str], Obj | None]  # namespace, name


def service_origin(
    service: Obj,
    slices: Iterable[Obj],
    find_pod: FindPod,
    scheme: str,
    port: str,
    rng: random.Random,
) -> Origin:
    """Raises ServiceUnavailable."""
    wanted = _port_name(service, port)
    found = [
        (address, number)
        for part in slices
        for number in _numbers(part, wanted)
        for address in _addresses(part, find_pod)
    ]
    if not found:
        raise ServiceUnavailable(f'no endpoints available for service "{name_of(service)}"')
    address, number = rng.choice(found)
    return Origin(scheme or "http", address, number)


def _port_name(service: Obj, port: str) -> str:
    """A number is one of the service's own ports; endpoints know ports by name."""
    if not is_digits(port):
        return port
    for item in (service.get("spec") or {}).get("ports") or ():
        if item.get("port") == int(port):
            return str(item.get("name") or "")
    raise ServiceUnavailable(f'no service port {int(port)} found for service "{name_of(service)}"')


def _numbers(part: Obj, wanted: str) -> list[int]:
    ports = part.get("ports") or ()
    return [
        port["port"] for port in ports if (port.get("name") or "") == wanted and port.get("port")
    ]


def _addresses(part: Obj, find_pod: FindPod) -> list[str]:
    found = []
    for endpoint in part.get("endpoints") or ():
        target = endpoint.get("targetRef") or {}
        if (endpoint.get("conditions") or {}).get("ready") is False or target.get("kind") != "Pod":
            continue
        if target.get("namespace") not in (None, "", namespace_of(part)):
            continue
        pod = find_pod(namespace_of(part), target.get("name") or "")
        status: Obj = (pod or {}).get("status") or {}
        own = {item.get("ip") for item in status.get("podIPs") or ()}
        found += [address for address in endpoint.get("addresses") or () if address in own]
    return found
