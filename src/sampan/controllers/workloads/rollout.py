"""The arithmetic of a rollout: how many pods each ReplicaSet of a Deployment may have now.

Job: surge and unavailability in numbers, the next sizes of new and old sets, proportional scaling.
    Pure; as upstream's deployment controller.
Invariant: the sizes asked for never sum up to more than replicas + surge, unless they did before.
Invariant: old sets shrink only by what the budget of unavailable pods allows.
"""

import math
from collections.abc import Sequence

from sampan.api.objects import Obj, annotations_of, meta_of, name_of

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"

Sizes = dict[str, int]  # name of a set → its new size


def replicas_of(obj: Obj | None) -> int:
    if obj is None:
        return 0
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def available_of(replica_set: Obj | None) -> int:
    return 0 if replica_set is None else status_count(replica_set, "availableReplicas")


def status_count(obj: Obj, field: str) -> int:
    return int((obj.get("status") or {}).get(field) or 0)


def is_rolling(deployment: Obj) -> bool:
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def surge_and_unavailable(deployment: Obj) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) in pods; never both 0, or nothing could ever move."""
    replicas = replicas_of(deployment)
    if not is_rolling(deployment):
        return 0, 0
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge", "25%"), replicas, round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, replicas)


def scaled_value(amount: int | str, whole: int, *, round_up: bool) -> int:
    """An IntOrString: a number, or a percentage of `whole`."""
    if isinstance(amount, int):
        return amount
    if not amount.endswith("%"):
        return int(amount)
    exact = int(amount[:-1]) * whole / 100
    return math.ceil(exact) if round_up else math.floor(exact)


def new_set_size(deployment: Obj, sets: Sequence[Obj], new_set: Obj | None) -> int:
    """What the new set may have now, given all sets (the new one among them)."""
    replicas, current = replicas_of(deployment), replicas_of(new_set)
    if not is_rolling(deployment):
        return replicas
    surge, _ = surge_and_unavailable(deployment)
    if current > replicas:
        return replicas
    room = replicas + surge - sum(replicas_of(item) for item in sets)
    return current if room <= 0 else current + min(room, replicas - current)


def shrunk_old_sets(deployment: Obj, old_sets: Sequence[Obj], new_set: Obj | None) -> Sizes:
    """The old sets that shrink now: first what is not healthy, then what the budget allows."""
    replicas = replicas_of(deployment)
    _, unavailable = surge_and_unavailable(deployment)
    least = replicas - unavailable
    total = sum(replicas_of(item) for item in old_sets) + replicas_of(new_set)
    new_unavailable = replicas_of(new_set) - available_of(new_set)
    budget = total - least - new_unavailable
    if budget <= 0 or not any(replicas_of(item) for item in old_sets):
        return {}
    ordered = sorted(old_sets, key=_age)
    sizes = {name_of(item): replicas_of(item) for item in ordered}
    for item in ordered:
        unhealthy = max(0, replicas_of(item) - available_of(item))
        taken = min(budget, unhealthy)
        sizes[name_of(item)] -= taken
        budget -= taken
    # A set's status may be older than its size: what it no longer has is not available either.
    available = sum(min(available_of(item), replicas_of(item)) for item in old_sets)
    spare = min(available + available_of(new_set) - least, budget)
    for item in ordered:
        taken = max(0, min(sizes[name_of(item)], spare))
        sizes[name_of(item)] -= taken
        spare -= taken
    return {name: size for name, size in sizes.items() if size != _size_of(old_sets, name)}


def scaled_sets(deployment: Obj, new_set: Obj | None, old_sets: Sequence[Obj]) -> Sizes:
    """The sizes when the Deployment itself was scaled, in the middle of a rollout or not."""
    replicas = replicas_of(deployment)
    only = _active_or_latest(new_set, old_sets)
    if only is not None:
        return {name_of(only): replicas} if replicas_of(only) != replicas else {}
    if new_set is not None and _is_saturated(deployment, new_set):
        return {name_of(item): 0 for item in old_sets if replicas_of(item)}
    return _proportional(deployment, new_set, old_sets) if is_rolling(deployment) else {}


def is_scaling(deployment: Obj, sets: Sequence[Obj]) -> bool:
    """The Deployment's size is not the one for which its sets were last sized."""
    for item in sets:
        if replicas_of(item) > 0:
            desired = _annotated_number(item, DESIRED)
            if desired is not None and desired != replicas_of(deployment):
                return True
    return False


def size_annotations(deployment: Obj) -> dict[str, str]:
    replicas = replicas_of(deployment)
    surge, _ = surge_and_unavailable(deployment)
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + surge)}


def _proportional(deployment: Obj, new_set: Obj | None, old_sets: Sequence[Obj]) -> Sizes:
    """Spread what is added or removed over the sets by their share, the rest to the largest."""
    replicas = replicas_of(deployment)
    surge, _ = surge_and_unavailable(deployment)
    sets = [item for item in (*old_sets, new_set) if item is not None and replicas_of(item) > 0]
    change = (replicas + surge if replicas > 0 else 0) - sum(replicas_of(item) for item in sets)
    newest_first = change > 0
    ordered = sorted(sets, key=_age, reverse=newest_first)
    ordered.sort(key=replicas_of, reverse=True)  # stable: size first, then age
    done = 0
    sizes: Sizes = {}
    for item in ordered:
        share = _share(deployment, item, change - done) if change else 0
        sizes[name_of(item)] = replicas_of(item) + share
        done += share
    if ordered and change:
        first = name_of(ordered[0])
        sizes[first] = max(0, sizes[first] + change - done)
    return {name: size for name, size in sizes.items() if size != _size_of(sets, name)}


def _share(deployment: Obj, replica_set: Obj, left: int) -> int:
    fraction = _fraction(deployment, replica_set)
    return min(fraction, left) if left > 0 else max(fraction, left)


def _fraction(deployment: Obj, replica_set: Obj) -> int:
    replicas, current = replicas_of(deployment), replicas_of(replica_set)
    if replicas == 0:
        return -current
    surge, _ = surge_and_unavailable(deployment)
    before = _annotated_number(replica_set, MAXIMUM) or status_count(deployment, "replicas")
    if not before:
        return 0
    return math.floor(current * (replicas + surge) / before + 0.5) - current


def _active_or_latest(new_set: Obj | None, old_sets: Sequence[Obj]) -> Obj | None:
    """The one set that counts; None where there are several."""
    every = [item for item in (*old_sets, new_set) if item is not None]
    active = [item for item in every if replicas_of(item) > 0]
    if len(active) > 1:
        return None
    if active:
        return active[0]
    return new_set if new_set is not None else max(old_sets, key=_age, default=None)


def _is_saturated(deployment: Obj, replica_set: Obj) -> bool:
    replicas = replicas_of(deployment)
    return (
        replicas_of(replica_set) == replicas
        and _annotated_number(replica_set, DESIRED) == replicas
        and available_of(replica_set) == replicas
    )


def _annotated_number(obj: Obj, annotation: str) -> int | None:
    text = annotations_of(obj).get(annotation)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _size_of(sets: Sequence[Obj], name: str) -> int:
    return next(replicas_of(item) for item in sets if name_of(item) == name)


def _age(obj: Obj) -> tuple[str, str]:
    """Sorts the oldest first."""
    return str(meta_of(obj).get("creationTimestamp") or ""), name_of(obj)
