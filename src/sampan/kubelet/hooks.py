"""Lifecycle hooks: what a container wants done right after its start and before its stop.

Job: run one postStart or preStop handler against a running container.
Invariant: a handler that cannot be run is a failure, never skipped in silence.
"""

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.kubelet.runtime import Runtime, RuntimeFailure


class HookFailure(Exception):
    """The handler failed, or there is no such handler here."""


def handler_of(container: Obj, moment: str) -> Obj | None:
    """`moment` is postStart or preStop."""
    handler: Obj | None = (container.get("lifecycle") or {}).get(moment)
    return handler


async def run_hook(
    handler: Obj, container_id: str, *, runtime: Runtime, clock: Clock, timeout_seconds: float
) -> None:
    if "exec" in handler:
        command = handler["exec"].get("command") or []
        try:
            result = await runtime.exec_sync(container_id, command, timeout_seconds)
        except RuntimeFailure as error:
            raise HookFailure(str(error)) from error
        if result.exit_code != 0:
            raise HookFailure(f"command {command} exited with {result.exit_code}")
    elif "sleep" in handler:
        await clock.sleep(min(float(handler["sleep"].get("seconds") or 0), timeout_seconds))
    else:
        kind = next(iter(handler), "empty")
        raise HookFailure(f"hooks of type {kind} are not supported by this node yet")
