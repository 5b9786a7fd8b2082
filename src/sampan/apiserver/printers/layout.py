"""Table columns, and the cell texts that many kinds share.

Job: one Printer per kind = its columns and a function from an object to cells. Pure.
Invariant: a printer gives one cell per column.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sampan.api.objects import Obj, meta_of, name_of, seconds_of, spec_of
from sampan.api.rules import selectors
from sampan.api.rules.durations import human_duration
from sampan.core.fast_dataclass import dataclass

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"  # string, integer, number, boolean, date
    format: str = ""
    priority: int = 0  # 1: only in wide output
    description: str = ""

    def definition(self) -> Obj:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


Cells = Callable[[Obj, float], list[Any]]


@dataclass(frozen=True, slots=True)
class Printer:
    columns: tuple[Column, ...]
    cells: Cells


# Some columns are described in the words of the field that they show.
NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATION_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It"
    " is not guaranteed to be set in happens-before order across separate operations. Clients may "
    "not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the "
    "system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
NAME = Column("Name", format="name", description=NAME_TEXT)
AGE = Column("Age")


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
