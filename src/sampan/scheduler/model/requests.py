"""What a pod takes of a node: resources and host ports. Pure.

Job: a pod's requests as whole numbers (CPU in thousandths), as the original adds them up:
    containers, init containers, sidecars, pod-level resources, overhead, what a resize still holds.
Invariant: amounts are between 0 and MOST, whatever a manifest says.
"""

from collections.abc import Mapping

from sampan.api.objects import Obj
from sampan.api.quantity import QuantityError, value_of
from sampan.core.fast_dataclass import dataclass

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
MOST = 2**53  # sums of many and products with 100 still fit into 64 bits

# As schedutil: so much a container without a request counts for in scores, so that pods which
# ask for nothing do not all end up on one node.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
_DEFAULTS = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY}

ANY_ADDRESS = "0.0.0.0"
_STATUSES = ("containerStatuses", "initContainerStatuses")


@dataclass(frozen=True, slots=True)
class HostPort:
    protocol: str
    port: int
    address: str


@dataclass(frozen=True, slots=True)
class Usage:
    requests: tuple[tuple[str, int], ...]  # by name, without zeros
    scored_cpu: int  # with the default for containers that request none
    scored_memory: int
    ports: tuple[HostPort, ...] = ()


def usage_of(pod: Obj) -> Usage:
    requests = _requests(pod, {})
    scored = _requests(pod, _DEFAULTS)
    named = tuple(sorted((name, amount) for name, amount in requests.items() if amount))
    return Usage(named, scored.get(CPU, 0), scored.get(MEMORY, 0), _host_ports(pod))


def amounts(written: Mapping[str, object] | None) -> dict[str, int]:
    """A resource list as numbers; what is not a quantity counts as none of it."""
    found = {}
    for name, text in (written or {}).items():
        try:
            quantity = value_of(text)  # type: ignore[arg-type]  # text or number; else it fails
        except (QuantityError, AttributeError):
            continue
        amount = quantity.milli() if name == CPU else quantity.value()
        found[name] = min(max(amount, 0), MOST)
    return found


def _requests(pod: Obj, defaults: dict[str, int]) -> dict[str, int]:
    spec = pod.get("spec") or {}
    held = _Held(pod)
    total: dict[str, int] = {}
    for container in spec.get("containers") or ():
        _add(total, defaults | held.requests(container))
    sidecars: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        wanted = dict(defaults | held.requests(container))
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
            wanted = dict(sidecars)
        else:
            _add(wanted, sidecars)
        _raise_to(most, wanted)
    _raise_to(total, most)
    for name, amount in amounts((spec.get("resources") or {}).get("requests")).items():
        if name in (CPU, MEMORY) or name.startswith("hugepages-"):
            total[name] = amount
    _add(total, amounts(spec.get("overhead")))
    return total


def held_for(pod: Obj) -> tuple[object, ...]:
    """The parts of a pod's status that bear on what it takes."""
    status = pod.get("status") or {}
    return (
        _is_infeasible(status),
        *(
            (one.get("name"), one.get("resources"), one.get("allocatedResources"))
            for kind in _STATUSES
            for one in status.get(kind) or ()
        ),
    )


def _is_infeasible(status: Obj) -> bool:
    return any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions") or ()
    )


class _Held:
    """Requests of one pod's containers, with what its node still holds for them: while a container
    is being resized, the larger of old and new counts (resourcehelper.PodRequests)."""

    def __init__(self, pod: Obj) -> None:
        status = pod.get("status") or {}
        self._statuses = {
            one.get("name"): one for kind in _STATUSES for one in status.get(kind) or ()
        }
        self._infeasible = _is_infeasible(status)

    def requests(self, container: Obj) -> dict[str, int]:
        wanted = amounts((container.get("resources") or {}).get("requests"))
        status = self._statuses.get(container.get("name"))
        if status is None:
            return wanted
        held = amounts((status.get("resources") or {}).get("requests"))
        _raise_to(held, amounts(status.get("allocatedResources")))
        if not held:
            return wanted
        if not self._infeasible:
            _raise_to(held, wanted)
        return held


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = min(total.get(name, 0) + amount, MOST)


def _raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)


def _host_ports(pod: Obj) -> tuple[HostPort, ...]:
    spec = pod.get("spec") or {}
    containers = list(spec.get("containers") or ())
    # Only those init containers that go on running hold their ports.
    containers += [
        one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"
    ]
    return tuple(
        HostPort(
            port.get("protocol") or "TCP", int(port["hostPort"]), port.get("hostIP") or ANY_ADDRESS
        )
        for container in containers
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )
