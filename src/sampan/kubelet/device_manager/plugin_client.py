"""A device plugin, as the device manager calls it.

Job: the questions; a socket's client answers them, or somebody in this process who pretends.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol


class PluginClient(Protocol):
    def watch(self) -> AsyncIterator[Any]:
        """ListAndWatchResponses, for as long as the plugin lives. Raises GrpcFailure, as all."""

    async def preferred(
        self, available: Sequence[str], included: Sequence[str], size: int, /
    ) -> list[str]: ...

    async def allocate(self, devices: Sequence[str], /) -> bytes:
        """Its ContainerAllocateResponse."""

    async def pre_start(self, devices: Sequence[str], /) -> None: ...

    async def close(self) -> None: ...
