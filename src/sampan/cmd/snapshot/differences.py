"""What is different between two snapshots. Pure.

Job: objects before and after → one Difference for each object that came, went or changed.
Invariant: what changes all the time and says nothing (revisions, heartbeats, managed fields) is no
    difference.
"""

from collections.abc import Iterator, Mapping, Sequence

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

RESTLESS_KINDS = ("Event", "Lease")
RESTLESS_FIELDS = ("resourceVersion", "managedFields")
HEARTBEATS = ("lastHeartbeatTime",)
KEYS = ("name", "type", "uid", "key")
MOST_TEXT = 80


@dataclass(frozen=True, slots=True)
class Difference:
    what: str  # added, removed, changed
    kind: str
    namespace: str
    name: str
    fields: tuple[str, ...] = ()  # `spec.replicas: 2 → 3`

    def lines(self) -> list[str]:
        sign = {"added": "+", "removed": "-", "changed": "~"}[self.what]
        place = f"{self.namespace}/" if self.namespace else ""
        return [f"{sign} {self.kind} {place}{self.name}", *(f"    {text}" for text in self.fields)]


def differences(before: Sequence[Obj], after: Sequence[Obj]) -> list[Difference]:
    """By namespace, kind and name. An object that was made anew under its name was changed."""
    was, now = _by_name(before), _by_name(after)
    found = []
    for key in sorted({*was, *now}):
        namespace, kind, name = key
        if key not in now:
            found.append(Difference("removed", kind, namespace, name))
        elif key not in was:
            found.append(Difference("added", kind, namespace, name))
        elif fields := tuple(_fields("", _telling(was[key]), _telling(now[key]))):
            found.append(Difference("changed", kind, namespace, name, fields))
    return found


def _by_name(objects: Sequence[Obj]) -> Mapping[tuple[str, str, str], Obj]:
    return {
        (obj["metadata"].get("namespace", ""), obj["kind"], obj["metadata"]["name"]): obj
        for obj in objects
        if obj["kind"] not in RESTLESS_KINDS
    }


def _telling(obj: Obj) -> Obj:
    meta = {key: item for key, item in obj["metadata"].items() if key not in RESTLESS_FIELDS}
    return {**obj, "metadata": meta}


def _fields(path: str, before: object, after: object) -> Iterator[str]:
    if before == after or path.rpartition(".")[2] in HEARTBEATS:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _fields(f"{path}.{key}" if path else key, before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list):
        was, now = _by_key(before), _by_key(after)
        for key in dict.fromkeys((*was, *now)):
            yield from _fields(f"{path}[{key}]", was.get(key), now.get(key))
    else:
        yield f"{path}: {_text(before)} → {_text(after)}"


def _by_key(items: list[object]) -> dict[str, object]:
    """Items that have a name or a type are known by it, wherever they stand; others by place."""
    for field in KEYS:
        names = [str(item[field]) for item in items if isinstance(item, dict) and field in item]
        if items and len({*names}) == len(items):
            return dict(zip(names, items, strict=True))
    return {str(number): item for number, item in enumerate(items)}


def _text(value: object) -> str:
    text = "nothing" if value is None else " ".join(str(value).split())
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"
