"""What a runtime offers that has no streaming server of its own beside the node's.

Job: exec, attach and port-forward as answers to the client's own request; what a client asks for,
    and what it is told at the end.
"""

from typing import Protocol

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Reply, Request


@dataclass(frozen=True, slots=True)
class StreamOptions:
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool
    command: tuple[str, ...] = ()


def exit_status(code: int) -> Obj:
    """What whoever ran a command writes on the error stream when it ended."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


class LocalStreams(Protocol):
    """All raise RuntimeFailure before anything was answered."""

    async def exec(self, container_id: str, options: StreamOptions, request: Request) -> Reply: ...

    async def attach(
        self, container_id: str, options: StreamOptions, request: Request
    ) -> Reply: ...

    async def port_forward(self, sandbox_id: str, request: Request) -> Reply: ...
