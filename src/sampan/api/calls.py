"""One call to the API as a value: the same for a request over HTTPS and for one in this process.

Job: what is asked (Call), how (Options), and what is answered (Answer, ListAnswer). Pure.
Invariant: whatever an answer carries is shared with the server's cache: read-only for everyone.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.core.fast_dataclass import dataclass
from sampan.core.telemetry.spans import NO_MARKS, Marks


@dataclass(frozen=True, slots=True)
class Options:
    """The query parameters (and DeleteOptions) of a call; each verb looks at its own."""

    # reads
    resource_version: str = ""
    resource_version_match: str = ""
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    parameters: tuple[tuple[str, str], ...] = ()  # others, for an aggregated server
    # watches
    timeout_seconds: int = 0
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None  # None: nothing was said
    watch_path: bool = False  # by the old path with /watch/, which says what a list says
    # writes
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    patch_type: str = ""  # json, merge, strategic, apply
    force: bool | None = None  # None: nothing was said
    # deletes
    grace_seconds: int | None = None
    precondition_uid: str = ""
    precondition_resource_version: str = ""
    propagation: str = ""  # Orphan, Background, Foreground


DEFAULT_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Call:
    """verb: get, list, watch, create, update, patch, delete, deletecollection."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Any = None  # an Obj that now belongs to the server; for JSON patches a list
    options: Options = DEFAULT_OPTIONS
    problems: tuple[str, ...] = ()  # fields that the body had twice, found while it was read
    agent: str = ""  # the client's User-Agent; empty inside of this process
    size: int = 0  # of the body, in bytes, as it would be sent; 0: small
    marks: Marks = NO_MARKS  # where its trace is written down


class Item:
    """One object as the watch cache holds it: parsed and serialised, both with its revision."""

    __slots__ = ("as_is", "data", "forms", "key", "obj", "revision", "size")

    def __init__(self, key: str, revision: int, obj: Obj, data: bytes) -> None:
        self.key = key
        self.revision = revision
        self.obj = obj
        self.data = data
        self.size = len(data)  # about
        # Of a custom kind: the schema that shows the item as it is, and the item as others do,
        # once somebody has asked.
        self.as_is: object = None
        self.forms: dict[Any, Item] | None = None


@dataclass(slots=True)
class Answer:
    """`data` is the object's JSON where it exists already; the HTTP edge makes it otherwise."""

    obj: Obj
    data: bytes | None = None
    code: int = 200
    warnings: Sequence[str] = ()


@dataclass(slots=True)
class ListAnswer:
    resource: Resource
    items: Sequence[Item]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    warnings: Sequence[str] = field(default=())


class Event:
    """One event of a watch, shared by all who watch. `line` is its JSON as it goes over the wire,
    newline included; it is made when somebody first asks for it."""

    __slots__ = ("_line", "item", "type")

    def __init__(self, type_: str, item: Item) -> None:
        self.type = type_  # ADDED, MODIFIED, DELETED, BOOKMARK
        self.item = item
        self._line = b""

    @property
    def line(self) -> bytes:
        if not self._line:
            start = b'{"type":"%b","object":' % self.type.encode()
            self._line = b"".join((start, self.item.data, b"}\n"))
        return self._line

    def forget_line(self) -> None:
        """Whoever is late makes it again; kept, it would double the memory of every change."""
        self._line = b""
