"""The containers of a pod that a pattern of names means.

Job: a pod spec and what --containers was given become containers.
"""

from sampan.api.objects import Obj


def chosen(spec: Obj, pattern: str) -> list[Obj]:
    """Containers, then init containers, whose names fit."""
    found = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return [item for item in found if _fits(str(item.get("name")), pattern)]


def _fits(name: str, pattern: str) -> bool:
    """As kubectl reads `*`: parts are looked for from where the last one began."""
    if pattern == "*":
        return True
    if "*" not in pattern:
        return name == pattern
    at, parts = 0, pattern.split("*")
    for i, part in enumerate(parts):
        if not part:
            continue
        found = name[at:].find(part)
        is_last = i == len(parts) - 1
        if found < at or (i == 0 and at) or (is_last and len(name) != len(part) + found):
            return False
        at = found
    return True
