"""Setting a default: the one way in which a default gets into an object.

Job: set what is missing, leave what is there.
Invariant: a value that was given, even an empty one, is never replaced.
"""

from typing import Any

from sampan.api.objects import Obj, copy_of
from sampan.api.quantity import to_milli


def fill(obj: Obj, **defaults: Any) -> None:
    for key, value in defaults.items():
        if obj.get(key) is None:
            obj[key] = copy_of(value)


def round_amounts(*amounts: Obj | None) -> None:
    """Quantities of resources: to thousandths."""
    for table in amounts:
        for name, text in (table or {}).items():
            if isinstance(text, str) and text[-1:] in ("n", "u"):
                table[name] = to_milli(text)  # type: ignore[index]  # there is one: it has names


def spec_of(obj: Obj) -> Obj:
    """The object's spec, made where there is none."""
    return part_of(obj, "spec")


def part_of(obj: Obj, key: str) -> Obj:
    part: Obj | None = obj.get(key)
    if part is None:
        part = obj[key] = {}
    return part
