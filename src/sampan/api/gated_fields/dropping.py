"""Fields behind gates that are off are dropped when an object is written, as upstream does.

Job: of a kind, one function that drops what is off, unless the stored object uses it.
Invariant: what is off is found once for a release; a write walks only the places of gates that are.
"""

from collections.abc import Callable, Iterator, Sequence

from sampan.api import features
from sampan.api.gated_fields.paths import Place, clear, holders, is_there, is_used, place_of
from sampan.api.gated_fields.pod_fields import SPECIAL
from sampan.api.gated_fields.table import FIELDS, POD_FIELDS, POD_SPECS
from sampan.api.objects import Obj

Drop = Callable[[Obj, Obj | None], None]  # (new, old; None: it is created)
GATES = frozenset({*FIELDS, *POD_FIELDS, *SPECIAL})


def dropping(group_resource: str) -> Drop | None:
    """None where nothing of the kind is off."""
    known = features.of_release(_by_kind)
    if group_resource not in known:
        drops = list(_drops_of(group_resource))
        known[group_resource] = _all(drops) if drops else None
    return known[group_resource]


def _by_kind(_release: features.Release) -> dict[str, Drop | None]:
    """Each when it is first asked for."""
    return {}


def _drops_of(kind: str) -> Iterator[Drop]:
    spec = POD_SPECS.get(kind)
    for gate in sorted(GATES - features.all_enabled()):
        paths = list(FIELDS.get(gate, {}).get(kind, ()))
        if spec is not None:
            paths += (f"{spec}.{path}" for path in POD_FIELDS.get(gate, ()))
        if paths:
            yield _dropper([place_of(path) for path in paths])
        if spec is not None and gate in SPECIAL:
            yield _special_dropper(gate, spec)


def _dropper(places: Sequence[Place]) -> Drop:
    def drop(new: Obj, old: Obj | None) -> None:
        # Nearly no object has any: then nobody has to look at the old one.
        there = [place for place in places if is_there(new, place)]
        if there and (old is None or not is_used(old, places)):
            for place in there:
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
