"""The rolling update of a DaemonSet: which outdated pods go, and where new ones come first.

Job: keep within maxUnavailable, or within maxSurge. Pure.
Invariant: what is unavailable anyway is replaced at once, and counts against what may be.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, is_deleted
from sampan.controllers.workloads.daemon_layout import Layout, Place
from sampan.controllers.workloads.rollout import scaled_value
from sampan.core.fast_dataclass import dataclass


def pods_to_roll(layout: Layout) -> list[Obj]:
    """Outdated pods that may go now, without a surge. On nodes where no new one may run, too."""
    surge, unavailable = budget_of(layout)
    if not layout.rolls() or surge:
        return []
    going: list[Obj] = []
    candidates: list[Obj] = []
    down = 0
    for place in layout.busy_places():
        found = _old_and_new(layout, place)
        if found is None or (found.old is None) == (found.new is None):
            down += 1  # pods are about to be made or deleted here
        elif found.new is not None:
            down += not layout.is_available(found.new)
        elif found.old is not None and not layout.is_available(found.old):
            going.append(found.old)
            down += 1
        elif found.old is not None:
            candidates.append(found.old)
    return [*going, *candidates[: max(0, unavailable - down)]]


@dataclass(frozen=True, slots=True)
class _Pair:
    old: Obj | None = None
    new: Obj | None = None


def _old_and_new(layout: Layout, place: Place) -> _Pair | None:
    """None where there are several of a kind: they are thinned out first."""
    living = [pod for pod in place.pods if not is_deleted(pod)]
    new = [pod for pod in living if layout.is_current(pod)]
    old = [pod for pod in living if not layout.is_current(pod)]
    if len(old) > 1 or len(new) > 1:
        return None
    return _Pair(old[0] if old else None, new[0] if new else None)


def surge_of(layout: Layout) -> tuple[list[str], list[Obj]]:
    """Nodes that get a new pod beside their outdated one, and outdated pods that may go."""
    surge, _ = budget_of(layout)
    if not surge or not layout.rolls():
        return [], []
    places = layout.busy_places()
    pairs = [(place, _old_and_new(layout, place)) for place in places]
    found = [(place, pair) for place, pair in pairs if pair is not None]
    serving = sum(_serves(layout, pair.old or pair.new) for _, pair in found)
    # Where two are, the old one goes when the new one serves.
    both = [pair for _, pair in found if pair.old is not None and pair.new is not None]
    going = [pair.old for pair in both if pair.old is not None and _serves(layout, pair.new)]
    surging = len(places) - len(found) + len(both) - len(going)
    outdated = _Outdated.of(layout, found)
    # Who has to leave its node waits until enough others serve.
    spare = serving - sum(place.should_run for place in layout.places)
    nodes = [*outdated.broken, *outdated.serving[: max(0, surge - surging)]]
    return nodes, [*going, *outdated.useless, *outdated.misplaced[: max(0, spare)]]


@dataclass(frozen=True, slots=True)
class _Outdated:
    """Nodes and pods of the old revision, where there is no new one yet."""

    broken: list[str]  # as upstream: where the old pod does not serve, its successor is no surge
    serving: list[str]
    useless: list[Obj]  # neither serves nor may stay
    misplaced: list[Obj]

    @staticmethod
    def of(layout: Layout, found: Sequence[tuple[Place, _Pair]]) -> "_Outdated":
        old = [(place, pair.old) for place, pair in found if pair.old and pair.new is None]
        staying = [(place.name, _serves(layout, pod)) for place, pod in old if place.should_run]
        leaving = [(pod, _serves(layout, pod)) for place, pod in old if not place.should_run]
        return _Outdated(
            [name for name, serves in staying if not serves],
            [name for name, serves in staying if serves],
            [pod for pod, serves in leaving if not serves],
            [pod for pod, serves in leaving if serves],
        )


def _serves(layout: Layout, pod: Obj | None) -> bool:
    return pod is not None and layout.is_available(pod)


def budget_of(layout: Layout) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) in nodes."""
    strategy = layout.owner["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    nodes = sum(place.should_run for place in layout.places)
    surge = scaled_value(rolling.get("maxSurge", 0), nodes, round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", 1), nodes, round_up=True)
    return (surge, 0) if surge else (0, max(1, unavailable))
