"""The API that is not there: for a node that runs by itself.

Job: fulfil the Client contract by saying so.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, NoReturn

from sampan.api.errors import ServiceUnavailable
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.client.contract import Listed, WatchEvent


class NoApiClient:
    async def get(self, resource: Resource, namespace: str, name: str, **_: Any) -> Obj:
        _refuse()

    async def list(self, resource: Resource, namespace: str = "", **_: Any) -> Listed:
        _refuse()

    def watch(self, resource: Resource, namespace: str = "", **_: Any) -> AsyncIterator[WatchEvent]:
        _refuse()

    async def create(self, resource: Resource, obj: Obj, namespace: str = "", **_: Any) -> Obj:
        _refuse()

    async def update(self, resource: Resource, obj: Obj, **_: Any) -> Obj:
        _refuse()

    async def patch(
        self, resource: Resource, namespace: str, name: str, patch: Any, **_: Any
    ) -> Obj:
        _refuse()

    async def delete(self, resource: Resource, namespace: str, name: str, **_: Any) -> Obj:
        _refuse()

    async def resources(self, group: str, version: str) -> Sequence[Resource]:
        _refuse()


def _refuse() -> NoReturn:
    raise ServiceUnavailable("there is no API server: this node runs by itself")
