"""What one version answers otherwise than another.

Job: two answers to one manifest → what its owner should know. Pure.
"""

from collections.abc import Iterator
from typing import Any, Literal

import orjson

from sampan.api.objects import Obj
from sampan.cmd.verbs.versions.version_answers import Answer
from sampan.core.fast_dataclass import dataclass

Sort = Literal["removed", "added", "refused", "accepted", "warning", "default"]
BREAKING: tuple[Sort, ...] = ("removed", "refused")
# What a server makes up, or finds out later.
_OWN = frozenset({
    "uid", "creationTimestamp", "managedFields", "resourceVersion", "clusterIP", "clusterIPs",
    "nodePort", "healthCheckNodePort", "status",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    sort: Sort
    text: str
    field: str = ""


def differences(old: Answer, new: Answer) -> list[Difference]:
    """None where both refuse it."""
    if old.code == 404 or new.code == 404:
        if old.code == new.code:
            return []
        return [Difference("removed" if new.code == 404 else "added", "")]
    if old.is_taken and not new.is_taken:
        return [Difference("refused", new.message)]
    if new.is_taken and not old.is_taken:
        return [Difference("accepted", old.message)]
    found = [Difference("warning", text) for text in new.warnings if text not in old.warnings]
    return [*found, *_fields(old.obj, new.obj, "")]


def _fields(old: Obj, new: Obj, path: str) -> Iterator[Difference]:
    made_up = {"name"} if path == "metadata" and "generateName" in new else set()
    for key in sorted((old.keys() | new.keys()) - _OWN - made_up):
        here = f"{path}.{key}" if path else key
        yield from _values(old.get(key), new.get(key), here)


def _values(old: Any, new: Any, path: str) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _fields(old, new, path)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _values(*pair, f"{path}[{index}]")
    elif old != new:
        yield Difference("default", f"{_shown(old)} → {_shown(new)}", path)


def _shown(value: Any) -> str:
    return "none" if value is None else orjson.dumps(value).decode()
