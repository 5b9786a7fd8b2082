"""Table columns, and the cell texts that many kinds share.

Job: one Printer per kind = its columns and a function from an object to cells. Pure.
Invariant: a printer gives one cell per column, or more: those without a column are not shown.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sampan.api.objects import Obj, meta_of, name_of, seconds_of, spec_of
from sampan.api.rules import selectors
from sampan.api.rules.durations import human_duration
from sampan.core.fast_dataclass import dataclass

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
_MOST_SHOWN = 3


class Field(NamedTuple):
    """A field that a column shows, and whose documentation describes the column."""

    definition: str  # its name without io.k8s
    name: str
    until: str = ""  # where the part that is said begins to end


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"  # string, integer, number, boolean, date
    format: str = ""
    priority: int = 0  # 1: only in wide output
    description: str | Field = ""  # what the table of descriptions does not say


Cells = Callable[[Obj, float], list[Any]]


@dataclass(frozen=True, slots=True)
class Printer:
    columns: tuple[Column, ...]
    cells: Cells


_OBJECT_META = "apimachinery.pkg.apis.meta.v1.ObjectMeta"
NAMED = Field(_OBJECT_META, "name")
CREATED = Field(_OBJECT_META, "creationTimestamp")
NAME = Column("Name", format="name", description=NAMED)
AGE = Column("Age", description=CREATED)


def columns(*names: str | Column) -> tuple[Column, ...]:
    """Plain text columns by name, others as they are."""
    return tuple(Column(name) if isinstance(name, str) else name for name in names)


def wide(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, priority=1) for name in names)


def integer(name: str) -> Column:
    return Column(name, "integer")


def boolean(name: str) -> Column:
    return Column(name, "boolean")


WORKLOAD = wide("Containers", "Images", "Selector")


def since(moment: str | None, now: float) -> str:
    """How long ago; unknown where there is no moment."""
    return human_duration(now - seconds_of(moment)) if moment else UNKNOWN


def age(obj: Obj, now: float) -> str:
    return since(meta_of(obj).get("creationTimestamp"), now)


def just_name_and_age(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), age(obj, now)]


def containers_and_images(pod_spec: Obj) -> list[str]:
    containers = pod_spec.get("containers") or ()
    return [
        ",".join(container.get("name") or "" for container in containers),
        ",".join(container.get("image") or "" for container in containers),
    ]


def template_spec(obj: Obj) -> Obj:
    spec: Obj = (spec_of(obj).get("template") or {}).get("spec") or {}
    return spec


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Obj | None) -> str:
    try:
        return str(selectors.from_object(selector)) or NONE
    except selectors.SelectorError:
        return "<error>"


def list_text(items: Sequence[str], count: int | None = None) -> str:
    """The first three, and how many more there are."""
    count = len(items) if count is None else count
    text = ",".join(items[:_MOST_SHOWN])
    return f"{text} + {count - _MOST_SHOWN} more..." if count > _MOST_SHOWN else text


def bool_text(value: bool | None) -> str:
    return UNSET if value is None else "True" if value else "False"
