"""Which devices a container gets.

Job: what is registered, healthy, in use and aligned → the devices to take, and those that a plugin
    may choose from; topology hints.
Invariant: no device is given to two containers, but for those that an init container of the same
    pod has finished with.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.resource_managers.numa import (
    Hint,
    Mask,
    NumaNodes,
    count,
    preferring_narrow,
)


class NotEnough(Exception):
    """In upstream's words."""


@dataclass(frozen=True, slots=True)
class PluginDevice:
    id: str
    healthy: bool = True
    numa: Mask = 0  # 0: it does not say


Devices = Mapping[str, PluginDevice]  # by id


@dataclass(frozen=True, slots=True)
class Wanted:
    resource: str
    amount: int
    held: frozenset[str] = frozenset()  # by this container already
    reusable: frozenset[str] = frozenset()  # of init containers of the same pod
    in_use: frozenset[str] = frozenset()  # by anybody
    affinity: Mask | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What is taken in any case, and what the rest may come from."""

    taken: tuple[str, ...]
    missing: int
    askable: tuple[str, ...] = ()  # of these a plugin may say which it prefers …
    within: frozenset[str] = frozenset()  # … but only these count
    fallback: tuple[str, ...] = ()


def chosen(wanted: Wanted, devices: Devices | None) -> Choice:
    """`devices` None: nobody ever registered them. Raises NotEnough."""
    healthy = _checked(wanted, devices)
    needed = wanted.amount - len(wanted.held)
    if needed == 0:
        return Choice((), 0)
    taken = sorted(wanted.reusable)[:needed]
    needed -= len(taken)
    if needed == 0:
        return Choice(tuple(taken), 0)
    available = healthy - wanted.in_use
    if len(available) < needed:
        raise NotEnough(
            f"requested number of devices unavailable for {wanted.resource}. "
            f"Requested: {needed}, Available: {len(available)}"
        )
    assert devices is not None
    aligned, others, anywhere = _by_affinity(available, devices, wanted.affinity)
    if needed < len(aligned):
        askable = {*aligned, *taken}
        return Choice(tuple(taken), needed, tuple(sorted(askable)), frozenset(aligned), (*aligned,))
    taken += aligned
    needed -= len(aligned)
    if needed == 0:
        return Choice(tuple(taken), 0)
    askable = {*available, *taken}
    return Choice(
        tuple(taken), needed, tuple(sorted(askable)), frozenset(available), (*others, *anywhere)
    )


def _checked(wanted: Wanted, devices: Devices | None) -> frozenset[str]:
    """The healthy ones. Raises NotEnough."""
    if devices is None:
        raise NotEnough(f"cannot allocate unregistered device {wanted.resource}")
    healthy = frozenset(device.id for device in devices.values() if device.healthy)
    if not healthy:
        raise NotEnough(
            f"no healthy devices present; cannot allocate unhealthy devices {wanted.resource}"
        )
    if not wanted.held <= healthy:
        raise NotEnough(
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
            f"{wanted.resource}"
        )
    return healthy


def completed(choice: Choice, preferred: Iterable[str], wanted: Wanted) -> tuple[str, ...]:
    """With what the plugin prefers, as far as it may. Raises NotEnough."""
    taken = list(choice.taken)
    left = wanted.amount - len(wanted.held)
    for device in (*preferred, *choice.fallback):
        if len(taken) < left and device in choice.within and device not in taken:
            taken.append(device)
    if len(taken) < left:
        raise NotEnough(
            "unexpectedly allocated less resources than required. "
            f"Requested: {wanted.amount}, Got: {len(taken)}"
        )
    return tuple(taken)


def _by_affinity(
    available: Collection[str], devices: Devices, affinity: Mask | None
) -> tuple[list[str], list[str], list[str]]:
    """Within the affinity, elsewhere, and those that do not say where they are."""
    if affinity is None or not any(device.numa for device in devices.values()):
        return [], [], sorted(available)
    aligned = [name for name in sorted(available) if devices[name].numa & affinity]
    anywhere = [name for name in sorted(available) if not devices[name].numa]
    others = sorted(set(available) - {*aligned, *anywhere})
    return aligned, others, anywhere


def device_hints(wanted: Wanted, devices: Devices, numa: NumaNodes) -> Sequence[Hint] | None:
    """None: these devices do not say where they are."""
    if not any(device.numa for device in devices.values()):
        return None
    if wanted.held:
        if len(wanted.held) != wanted.amount:
            return []
        return _hints(wanted, devices, numa, wanted.held, frozenset())
    healthy = {device.id for device in devices.values() if device.healthy}
    available = healthy - wanted.in_use
    if len(available | wanted.reusable) < wanted.amount:
        return []
    return _hints(wanted, devices, numa, available, wanted.reusable)


def _hints(
    wanted: Wanted,
    devices: Devices,
    numa: NumaNodes,
    available: Collection[str],
    reusable: Collection[str],
) -> list[Hint]:
    narrowest, possible = len(numa.ids), []
    for mask in numa.masks():
        within = sum(bool(device.numa & mask) for device in devices.values())
        if within >= wanted.amount:
            narrowest = min(narrowest, count(mask))
        placed = [devices[name].numa for name in reusable if devices[name].numa]
        if not all(place & mask for place in placed):
            continue
        there = sum(bool(devices[name].numa & mask) for name in available)
        if len(placed) + there >= wanted.amount:
            possible.append(mask)
    return preferring_narrow(possible, narrowest)
