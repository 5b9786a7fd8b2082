"""Where a backend of an Ingress answers: the ready endpoints of its Service.

Job: a backend, its Service and EndpointSlices → addresses and port, or why there are none. Pure.
Invariant: nothing is reached but endpoints: no name is resolved (ExternalName is refused), and no
    loopback, link-local or metadata address is connected to, whoever wrote the slice.
"""

from collections.abc import Callable, Iterable, Sequence

from sampan.api.objects import Obj
from sampan.api.rules.endpoint_slices import is_ready
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.origin import Origin
from sampan.core.ip_addresses import is_proxyable
from sampan.network.ingress.routing import Backend

_NOT_SPOKEN = frozenset({"kubernetes.io/h2c", "grpc", "kubernetes.io/grpc"})


@dataclass(frozen=True, slots=True)
class Unavailable:
    """There is nobody to ask: an answer's status, and a sentence for whoever asked."""

    status: int
    why: str


def why_not_served(backend: Backend, service: Obj | None) -> tuple[str, str] | None:
    """The reason and message of an event, where the Ingress itself leads nowhere."""
    if backend.resource:
        why = f"backend {backend.resource} is not served: only Services are"
        return "ResourceBackendNotSupported", why
    name = f"{backend.namespace}/{backend.service}"
    if service is None:
        return "ServiceNotFound", f'Service "{name}" not found'
    if (service.get("spec") or {}).get("type") == "ExternalName":
        return "ExternalNameNotSupported", (
            f'Service "{name}" is of type ExternalName: names outside of the cluster are not served'
        )
    port = _service_port(service, backend.port)
    if port is None:
        return "ServicePortNotFound", f'Service "{name}" has no TCP port {backend.port}'
    if port.get("appProtocol") in _NOT_SPOKEN:
        why = f"speaks {port['appProtocol']}: HTTP/2 is not passed on"
        return "ProtocolNotSupported", f'port {backend.port} of Service "{name}" {why}'
    return None


def endpoints_of(
    backend: Backend,
    service: Obj | None,
    slices: Iterable[Obj],
    is_simulated: Callable[[str], bool],
) -> Sequence[Origin] | Unavailable:
    """`is_simulated`: of a node's name."""
    problem = why_not_served(backend, service)
    if problem is not None:
        return Unavailable(503, problem[1])
    assert service is not None
    port = _service_port(service, backend.port)
    assert port is not None
    chosen = _serving(slices, port.get("name") or "")
    whose = f'Service "{backend.namespace}/{backend.service}"'
    if not chosen:
        return Unavailable(503, f"{whose} has no ready endpoint")
    real = [pair for pair in chosen if not is_simulated(pair[0].get("nodeName") or "")]
    if not real:
        return Unavailable(503, f"{whose} has only simulated pods: nothing answers at their ports")
    found = [
        Origin(_scheme(port), address, number)
        for entry, number in real
        for address in (entry.get("addresses") or ())[:1]
        if is_proxyable(address)
    ]
    return found or Unavailable(503, f"{whose} has no endpoint that may be connected to")


def _serving(slices: Iterable[Obj], port_name: str) -> list[tuple[Obj, int]]:
    """Endpoints with their port. As the service proxy: where none is ready, those that end."""
    entries = [
        (entry, number)
        for piece in slices
        if piece.get("addressType") != "FQDN"
        for number in _numbers(piece, port_name)
        for entry in piece.get("endpoints") or ()
    ]
    ready = [pair for pair in entries if is_ready(pair[0])]
    return ready or [pair for pair in entries if (pair[0].get("conditions") or {}).get("serving")]


def _service_port(service: Obj, wanted: str | int) -> Obj | None:
    for port in (service.get("spec") or {}).get("ports") or ():
        if (port.get("protocol") or "TCP") == "TCP" and wanted in (port.get("name"), port["port"]):
            found: Obj = port
            return found
    return None


def _scheme(port: Obj) -> str:
    return "https" if (port.get("appProtocol") or "").lower() == "https" else "http"


def _numbers(piece: Obj, name: str) -> list[int]:
    return [
        port["port"]
        for port in piece.get("ports") or ()
        if (port.get("name") or "") == name and port.get("port")
    ]
