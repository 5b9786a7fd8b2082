"""Facts about EndpointSlices: their Service, and which endpoints are ready.

Job: the Service of a slice; its endpoints that are ready. Pure.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj, labels_of, namespace_of

SERVICE_NAME = "kubernetes.io/service-name"  # the label


def services_of_slice(endpoint_slice: Obj) -> tuple[str, ...]:
    """The key of its Service; none where it is nobody's."""
    name = labels_of(endpoint_slice).get(SERVICE_NAME)
    return (f"{namespace_of(endpoint_slice)}/{name}",) if name else ()


def is_ready(endpoint: Obj) -> bool:
    """Who does not say is ready."""
    return (endpoint.get("conditions") or {}).get("ready") is not False


def ready_endpoints(endpoint_slice: Obj) -> Iterator[Obj]:
    return filter(is_ready, endpoint_slice.get("endpoints") or ())
