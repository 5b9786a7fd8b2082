"""Fields behind gates that are off are dropped when an object is written, as upstream does.

Job: of a kind, one function that drops what is off, unless the stored object uses it.
Invariant: what is off is found once for a release; a write walks only the places of gates that are.
"""

from collections.abc import Callable, Mapping, Sequence

from sampan.api import features
from sampan.api.gated_fields.paths import Place, clear, holders, is_used, place_of
from sampan.api.gated_fields.pod_fields import SPECIAL
from sampan.api.gated_fields.table import FIELDS, POD_FIELDS, POD_SPECS
from sampan.api.objects import Obj

Drop = Callable[[Obj, Obj | None], None]  # (new, old; None: it is created)
GATES = frozenset({*FIELDS, *POD_FIELDS, *SPECIAL})


def dropping(group_resource: str) -> Drop | None:
    """None where nothing of the kind is off."""
    return features.of_release(_by_kind).get(group_resource)


def _by_kind(_release: features.Release) -> Mapping[str, Drop]:
    off = sorted(GATES - features.all_enabled())
    found: dict[str, list[Drop]] = {}
    for gate in off:
        for kind, places in _places(gate).items():
            found.setdefault(kind, []).append(_dropper(places))
        if gate in SPECIAL:
            for kind, place in POD_SPECS.items():
                found.setdefault(kind, []).append(_special_dropper(gate, place))
    return {kind: _all(drops) for kind, drops in found.items()}


def _places(gate: str) -> dict[str, list[Place]]:
    """By group resource."""
    found = {kind: list(map(place_of, paths)) for kind, paths in FIELDS.get(gate, {}).items()}
    for path in POD_FIELDS.get(gate, ()):
        for kind, spec in POD_SPECS.items():
            found.setdefault(kind, []).append(place_of(f"{spec}.{path}"))
    return found


def _dropper(places: Sequence[Place]) -> Drop:
    def drop(new: Obj, old: Obj | None) -> None:
        if old is None or not is_used(old, places):
            for place in places:
                clear(new, place)

    return drop


def _special_dropper(gate: str, spec: str) -> Drop:
    special, way = SPECIAL[gate], place_of(f"{spec}.").way

    def drop(new: Obj, old: Obj | None) -> None:
        if old is None or not any(map(special.is_used, holders(old, way))):
            for held in holders(new, way):
                special.drop(held)

    return drop


def _all(drops: Sequence[Drop]) -> Drop:
    def drop(new: Obj, old: Obj | None) -> None:
        for each in drops:
            each(new, old)

    return drop
