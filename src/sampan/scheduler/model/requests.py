"""What a pod takes of a node, as the scheduler's columns count it: whole numbers. Pure.

Job: requests (api/rules/pod_resources.py adds them up) as integers, CPU in thousandths; host ports.
Invariant: amounts are between 0 and MOST, whatever a manifest says.
"""

from collections.abc import Mapping
from functools import lru_cache

from sampan.api.objects import Obj
from sampan.api.quantity import NANO, QuantityError, value_of
from sampan.api.rules.host_ports import HostPort, host_ports
from sampan.api.rules.pod_resources import held_requests
from sampan.client.by_identity import by_identity
from sampan.core.fast_dataclass import dataclass

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
MOST = 2**53  # sums of many and products with 100 still fit into 64 bits

# As schedutil: so much a container without a request counts for in scores, so that pods which
# ask for nothing do not all end up on one node.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
_MILLI = NANO // 1000
_DEFAULTS = {CPU: DEFAULT_MILLI_CPU * _MILLI, MEMORY: DEFAULT_MEMORY * NANO}


@dataclass(frozen=True, slots=True)
class Usage:
    requests: tuple[tuple[str, int], ...]  # by name, without zeros
    scored_cpu: int  # with the default for containers that request none
    scored_memory: int
    ports: tuple[HostPort, ...] = ()


_MORE = frozenset({"initContainers", "overhead", "resources"})  # of a spec: count, too


def usage_of(pod: Obj) -> Usage:
    """`pod` is a cache's, which nobody changes any more."""
    resources = _all_it_asks_for(pod)
    if resources is None:
        return _usage(pod)
    return _usage_with(resources)


@by_identity(1024)
def _usage_with(resources: Obj) -> Usage:
    """Of a container that is alone in its pod: those of one template share what they ask for."""
    return _usage({"spec": {"containers": [{"resources": resources}]}})


def _all_it_asks_for(pod: Obj) -> Obj | None:
    """The resources of its only container, where nothing else counts."""
    spec = pod.get("spec") or {}
    containers: list[Obj] = spec.get("containers") or []
    if len(containers) != 1 or not _MORE.isdisjoint(spec):
        return None
    container = containers[0]
    if "containerStatuses" in (pod.get("status") or ()):
        return None
    ports = container.get("ports")
    if ports and any(port.get("hostPort") for port in ports):
        return None
    resources: Obj | None = container.get("resources")
    return resources


def _usage(pod: Obj) -> Usage:
    requests = _whole(held_requests(pod, _nanos, {}))
    scored = _whole(held_requests(pod, _nanos, _DEFAULTS))
    named = tuple(sorted((name, amount) for name, amount in requests.items() if amount))
    return _shared_usage(named, scored.get(CPU, 0), scored.get(MEMORY, 0), host_ports(pod))


@lru_cache(maxsize=4096)
def _shared_usage(
    requests: tuple[tuple[str, int], ...], cpu: int, memory: int, ports: tuple[HostPort, ...]
) -> Usage:
    """Pods of one template take the same; it is kept once."""
    return Usage(requests, cpu, memory, ports)


def amounts(written: Mapping[str, object] | None) -> dict[str, int]:
    """A resource list as numbers; what is not a quantity counts as none of it."""
    return _whole(_nanos(written))


def _nanos(written: Mapping[str, object] | None) -> dict[str, int]:
    """In billionths, so that sums are exact."""
    found = {}
    for name, text in (written or {}).items():
        try:
            quantity = value_of(text)  # type: ignore[arg-type]  # text or number; else it fails
        except (QuantityError, AttributeError):
            continue
        found[name] = max(quantity.nanos, 0)
    return found


def _whole(nanos: Mapping[str, int]) -> dict[str, int]:
    """Rounded up."""
    return {
        name: min(-(-amount // (_MILLI if name == CPU else NANO)), MOST)
        for name, amount in nanos.items()
    }
