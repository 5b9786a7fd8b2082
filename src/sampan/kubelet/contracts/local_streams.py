"""What a runtime offers that has no streaming server of its own beside the node's.

Job: exec, attach and port-forward as answers to the client's own request.
"""

from typing import Protocol

from sampan.core.fast_dataclass import dataclass
from sampan.core.http import Reply, Request


@dataclass(frozen=True, slots=True)
class StreamOptions:
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool
    command: tuple[str, ...] = ()


class LocalStreams(Protocol):
    """All raise RuntimeFailure before anything was answered."""

    async def exec(self, container_id: str, options: StreamOptions, request: Request) -> Reply: ...

    async def attach(
        self, container_id: str, options: StreamOptions, request: Request
    ) -> Reply: ...

    async def port_forward(self, sandbox_id: str, request: Request) -> Reply: ...
