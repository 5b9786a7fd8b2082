"""Strategy: what is peculiar to a kind in the registry, as data and small functions.

Job: the questions that the one write path asks of a kind, each with the answer of most kinds.
To give a kind an answer of its own: a file beside this one, and a line in strategies.py.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

from sampan.api.apply.field_sets import FieldSet
from sampan.api.calls import Call
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Hold

Getter = Callable[[Obj], str]
Removed = Callable[[Obj], Awaitable[None]]
Contents = Callable[[Obj], Sequence[tuple[Resource, Obj]]]


def _nothing(_: Obj) -> None:
    return None


def _nothing_from_old(_new: Obj, _old: Obj) -> None:
    return None


def _no_warnings(_new: Obj, _old: Obj | None) -> Sequence[str]:
    return ()


def _vanishes(obj: Obj) -> bool:
    """An update that removes the last finalizer of a deleted object completes its deletion."""
    meta = obj["metadata"]
    return (
        bool(meta.get("deletionTimestamp"))
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
    )


class DecodedSpec(NamedTuple):
    text: bytes  # with its defaults
    fields: FieldSet  # all of it, as its creator owns it


class TemplateCache(Protocol):
    """Of a kind whose objects are made from templates, so that specs come again and again."""

    def decoded(self, call: Call) -> DecodedSpec | None:
        """The spec that a create sends; None where it is new."""

    def validation_key(self, obj: Obj) -> bytes | None:
        """All that decides whether the object is valid, besides metadata; None: more does."""

    def prepare_valid(self, key: bytes | None, obj: Obj) -> Sequence[str] | None:
        """prepare_create of an object that is known to be valid, and its warnings; None: it is
        not known."""

    def remember_valid(self, key: bytes, obj: Obj) -> None:
        """Of one that was validated, with nothing to warn of."""


@dataclass(frozen=True, slots=True)
class Strategy:
    # Fields behind feature gates that are off go before all else: (new, old; None: it is created).
    drop_gated: Callable[[Obj, Obj | None], None] | None = None
    # After defaults, before validation; they change the new object.
    prepare_create: Callable[[Obj], None] = _nothing
    prepare_update: Callable[[Obj, Obj], None] = _nothing_from_old  # (new, old)
    prepare_status: Callable[[Obj, Obj], None] = _nothing_from_old
    templates: TemplateCache | None = None
    keeps_status_on_create: bool = False
    has_generation: bool = False
    names_the_nameless: bool = False  # who has no name and no prefix for one is called by a UUID
    # Of the metadata: what makes another generation when it changes.
    generation_metadata: str = ""
    unconditional_update: bool = True
    creates_on_update: bool = False  # a PUT of what is not there
    # Field selectors beyond metadata.name and metadata.namespace.
    fields: Mapping[str, Getter] = field(default_factory=dict)
    # Fields by which watches are sorted, so that a change wakes only whom it concerns.
    trigger_fields: tuple[str, ...] = ("metadata.name",)
    # Graceful deletion: (object, seconds asked for) → seconds granted. None: the kind has none.
    grace: Callable[[Obj, int | None], int] | None = None
    # What becomes of dependents where a deletion does not say; empty: the collector takes them.
    default_propagation: str = ""
    # The first step of a deletion that has steps: the object as it leaves it; None: it was taken.
    terminating: Callable[[Obj, float], Obj | None] | None = None
    vanishes: Callable[[Obj], bool] = _vanishes
    # What the caller should know of an object that is good in itself: (new, old; None: created).
    warn: Callable[[Obj, Obj | None], Sequence[str]] = _no_warnings
    # Give the object what it needs beside the store (a service's addresses): (new, old, dry run,
    # what the write holds).
    allocate: Callable[[Obj, Obj | None, bool, Hold], Awaitable[None]] | None = None
    # What is to be given back when the object is no longer stored.
    removed: Removed | None = None
    # What the object has from its first moment (a namespace's service account); fresh objects.
    contents: Contents | None = None
    # A deletion answers with the object instead of a Status.
    returns_deleted: bool = False
    ttl_seconds: int = 0


def path_getter(*path: str) -> Getter:
    """The text at a path, as field selectors compare it; empty where there is nothing."""

    def get(obj: Obj) -> str:
        value: object = obj
        for step in path:
            if not isinstance(value, dict):
                return ""
            value = value.get(step)
        if value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)

    return get


def flag_getter(*path: str) -> Getter:
    """Like path_getter, for booleans: absent is `false`."""
    get = path_getter(*path)
    return lambda obj: get(obj) or "false"
