"""Client: the interface of every part to the API, over HTTPS or as a call in the same process.

Job: the verbs of the API as methods over plain dicts; errors are sampan.api.errors.
Invariant: what get, list and watch return is read-only: in one process it is shared with the
    server's watch cache. `copy_of` before a change.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Protocol

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.core.fast_dataclass import dataclass

PatchType = Literal["json", "merge", "strategic", "apply"]
Patch = Obj | list[Obj]
Propagation = Literal["Orphan", "Background", "Foreground"]


@dataclass(frozen=True, slots=True)
class Listed:
    items: list[Obj]
    revision: int
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: at most so many (0: all), from where an earlier page ended."""

    limit: int = 0
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Which object a deletion means; empty fields do not matter."""

    uid: str = ""
    revision: int = 0


WHOLE, NO_PRECONDITIONS = Page(), Preconditions()
NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """type: ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR is raised as the ApiError it stands for
    (Expired: list again)."""

    type: str
    object: Obj


class Client(Protocol):
    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        parameters: Mapping[str, str] = NO_PARAMETERS,
    ) -> Obj:
        """`parameters`: of a query that an aggregated server understands."""

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        revision: int | None = None,
        page: Page = WHOLE,
    ) -> Listed:
        """`revision` None reads the newest state; 0 takes whatever the server's cache has."""

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        """Changes after `revision`, with bookmarks; ends when the server closes it."""

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        """`name` and `subresource` for the likes of pods/NAME/binding."""

    async def update(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj: ...

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Patch,
        *,
        patch_type: PatchType = "strategic",
        subresource: str = "",
    ) -> Obj: ...

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        grace_seconds: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        propagation: Propagation | None = None,
    ) -> Obj: ...

    async def resources(self, group: str, version: str) -> Sequence[Resource]:
        """What is served of a group version, by whichever server. Raises UnknownPath."""
