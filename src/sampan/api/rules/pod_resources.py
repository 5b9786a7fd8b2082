"""What a pod requests, and what it may use at most. As resourcehelper.PodRequests and PodLimits.

Job: add up containers, init containers, sidecars, pod-level resources and overhead, from the spec
    alone or with what the node still holds while a resize is under way. Pure.
Invariant: a pod never requests less than its containers together, nor than any init container.
Invariant: only cpu, memory and huge pages can be asked for by the pod as a whole.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from sampan.api import quantity
from sampan.api.objects import Obj
from sampan.api.quantity import ZERO, Quantity
from sampan.api.rules import conditions
from sampan.api.rules.pods import containers, init_containers, is_sidecar, is_terminal

Amounts = dict[str, Quantity]
# Exact either way: a Quantity keeps how it likes to be printed, a bare number is quick to add.
Number = TypeVar("Number", int, Quantity)
# A written resource list → its amounts, as a dict of its own.
Reader = Callable[[Obj | None], dict[str, Number]]

_NO_OBJ: Obj = {}
_STATUSES = ("containerStatuses", "initContainerStatuses")


def requests(pod: Obj) -> Amounts:
    """By the spec: what the pod needs of a node."""
    return _requests(pod, quantities, _list_of("requests", quantities))


def limits(pod: Obj) -> Amounts:
    """By the spec: what the pod may use at most."""
    return _limits(pod, _list_of("limits", quantities))


def described_amounts(pod: Obj) -> tuple[Amounts, Amounts]:
    """Requests and limits as `kubectl describe node` shows them: of the containers, with what the
    node still holds for them, and the overhead; not of the pod as a whole."""
    requested = _aggregate(pod, _holding(pod, "requests", quantities))
    _add(requested, _overhead(pod, quantities))
    limited = _aggregate(pod, _list_of("limits", quantities))
    _raise_by_overhead(limited, pod)
    return requested, limited


def held_requests(
    pod: Obj, read: Reader[Number], unstated: Mapping[str, Number]
) -> dict[str, Number]:
    """What the pod takes of its node: while a container is resized, the larger of old and new.
    `unstated`: what a container counts for that says nothing."""
    held = _holding(pod, "requests", read)
    total = _requests(pod, read, lambda container: {**unstated, **held(container)})
    whole = _held_whole(pod, read)
    if whole:
        _add(whole, {name: at for name, at in _overhead(pod, read).items() if name in whole})
        total.update(whole)
    return total


def container_requests(spec: Obj) -> Amounts:
    """What the containers of a spec ask for together."""
    return _aggregate({"spec": spec}, _list_of("requests", quantities))


def container_limits(spec: Obj) -> Amounts:
    """What those that have a limit may use together."""
    return _aggregate({"spec": spec}, _list_of("limits", quantities))


def quota_usage(pod: Obj) -> Amounts:
    """What a pod that is not over takes of its namespace's quota."""
    usage: Amounts = {"count/pods": quantity.from_value(1)}
    if is_terminal(pod):
        return usage
    usage["pods"] = quantity.from_value(1)
    for name, amount in held_requests(pod, quantities, {}).items():
        usage[f"requests.{name}"] = amount
        if name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-"):
            usage[name] = amount
    for name, amount in _limits(pod, _holding(pod, "limits", quantities)).items():
        if name in ("cpu", "memory", "ephemeral-storage"):
            usage[f"limits.{name}"] = amount
    return usage


def is_set_as_a_whole(pod: Obj) -> bool:
    return bool(_whole(pod, "requests", quantities) or _whole(pod, "limits", quantities))


def is_limited(pod: Obj, name: str) -> bool:
    """Whether there is a limit at every moment: one container without may use all of the node."""
    if _whole(pod, "limits", quantities).get(name):
        return True
    of = _list_of("limits", quantities)
    if not all(of(container).get(name) for container in containers(pod)):
        return False
    beside: Amounts = {}
    for container in init_containers(pod):
        own = of(container)
        if is_sidecar(container):
            _add(beside, own)
        if not own.get(name) and not beside.get(name):
            return False
    return True


def can_be_asked_for_as_a_whole(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def quantities(written: Mapping[str, str] | None) -> Amounts:
    return {name: quantity.value_of(text) for name, text in written.items()} if written else {}


def resize_held(pod: Obj) -> tuple[object, ...]:
    """The parts of a pod's status that bear on what it takes: those that say something else than
    its spec."""
    status = pod.get("status") or _NO_OBJ
    whole = _held_whole(pod, quantities)
    if whole and whole != _whole(pod, "requests", quantities):
        return (_is_infeasible(pod), status["resources"], status.get("allocatedResources"))
    if "containerStatuses" not in status and "initContainerStatuses" not in status:
        return ()
    held = [
        (item.get("name"), item["resources"], item.get("allocatedResources"))
        for kind in _STATUSES
        for item in status.get(kind) or ()
        if item.get("resources") is not None
    ]
    if not held:
        return ()
    asked = {
        item.get("name"): item.get("resources") or _NO_OBJ
        for item in (*containers(pod), *init_containers(pod))
    }
    others = tuple(item for item in held if not _has_what_it_asks(item, asked.get(item[0])))
    return (_is_infeasible(pod), *others) if others else ()


def _has_what_it_asks(held: tuple[object, Obj, Obj | None], asked: Obj | None) -> bool:
    if asked is None:
        return False
    _, resources, allocated = held
    requests = asked.get("requests") or _NO_OBJ
    return (
        (resources.get("requests") or _NO_OBJ) == requests
        and (resources.get("limits") or _NO_OBJ) == (asked.get("limits") or _NO_OBJ)
        and (allocated or requests) == requests
    )


def _requests(
    pod: Obj, read: Reader[Number], of: Callable[[Obj], dict[str, Number]]
) -> dict[str, Number]:
    total = _aggregate(pod, of)
    total.update(_whole(pod, "requests", read))
    _add(total, _overhead(pod, read))
    return total


def _limits(pod: Obj, of: Callable[[Obj], Amounts]) -> Amounts:
    total = _aggregate(pod, of)
    total.update(_whole(pod, "limits", quantities))
    _raise_by_overhead(total, pod)
    return total


def _overhead(pod: Obj, read: Reader[Number]) -> dict[str, Number]:
    return read((pod.get("spec") or _NO_OBJ).get("overhead"))


def _raise_by_overhead(limits: Amounts, pod: Obj) -> None:
    """It raises a limit but makes none."""
    for name, amount in _overhead(pod, quantities).items():
        if limits.get(name, ZERO):
            limits[name] = limits[name] + amount


def _whole(pod: Obj, kind: str, read: Reader[Number]) -> dict[str, Number]:
    """Of the pod as a whole; it stands in place of what the containers say."""
    written = ((pod.get("spec") or _NO_OBJ).get("resources") or _NO_OBJ).get(kind)
    if not written:
        return {}
    return {
        name: amount for name, amount in read(written).items() if can_be_asked_for_as_a_whole(name)
    }


def _held_whole(pod: Obj, read: Reader[Number]) -> dict[str, Number]:
    """What the pod asks for as a whole, or its node still holds of that, where that is more;
    nothing, where the node says nothing of it."""
    asked, status = _whole(pod, "requests", read), pod.get("status") or _NO_OBJ
    if not asked or status.get("resources") is None:
        return {}
    held = {} if _is_infeasible(pod) else dict(asked)
    told = [read(status["resources"].get("requests"))]
    if not _overhead(pod, read):  # which is in it
        told.append(read(status.get("allocatedResources")))
    for amounts in told:
        _raise_to(held, {name: amount for name, amount in amounts.items() if name in asked})
    return held


def _aggregate(pod: Obj, of: Callable[[Obj], dict[str, Number]]) -> dict[str, Number]:
    """Normal containers and sidecars run together; before that, each init container runs beside
    the sidecars that were started before it."""
    total: dict[str, Number] = {}
    for container in containers(pod):
        _add(total, of(container))
    sidecars: dict[str, Number] = {}
    most: dict[str, Number] = {}
    for container in init_containers(pod):
        own = of(container)
        if is_sidecar(container):
            _add(total, own)
            _add(sidecars, own)
            _raise_to(most, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(most, own)
    _raise_to(total, most)
    return total


def _list_of(kind: str, read: Reader[Number]) -> Callable[[Obj], dict[str, Number]]:
    return lambda container: read((container.get("resources") or _NO_OBJ).get(kind))


def _holding(pod: Obj, kind: str, read: Reader[Number]) -> Callable[[Obj], dict[str, Number]]:
    """Of a container: the larger of what its spec says and what its node holds for it. An
    infeasible resize is only a wish."""
    listed = _list_of(kind, read)
    status = pod.get("status") or _NO_OBJ
    found = {
        item.get("name"): item
        for field in _STATUSES
        for item in status.get(field) or ()
        if item.get("resources") is not None
    }
    if not found:
        return listed
    infeasible = _is_infeasible(pod)
    once = {item.get("name") for item in init_containers(pod) if not is_sidecar(item)}

    def of(container: Obj) -> dict[str, Number]:
        name = container.get("name")
        if name not in found or name in once:
            return listed(container)
        held = read(found[name]["resources"].get(kind))
        if kind == "requests":
            _raise_to(held, read(found[name].get("allocatedResources")))
        if not infeasible:
            _raise_to(held, listed(container))
        return held

    return of


def _is_infeasible(pod: Obj) -> bool:
    pending = conditions.condition_of(pod, "PodResizePending")
    return pending is not None and pending.get("reason") == "Infeasible"


def _add(total: dict[str, Number], more: Mapping[str, Number]) -> None:
    for name, amount in more.items():
        have = total.get(name)
        total[name] = amount if have is None else have + amount


def _raise_to(total: dict[str, Number], least: Mapping[str, Number]) -> None:
    for name, amount in least.items():
        have = total.get(name)
        if have is None or have < amount:
            total[name] = amount
