"""Attaching to a pod that `run` has just made.

Job: wait until it runs, connect its streams, give its exit code.
"""

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import waiting
from sampan.cli.session import Session


def run_attached(session: Session, values: Values, pod: Obj, *, restart: str) -> int:
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"

    def is_started(obj: Obj | None) -> bool:
        if obj is None:
            raise CliError(f'pods "{meta["name"]}" not found')
        return (obj.get("status") or {}).get("phase") in ("Running", "Succeeded", "Failed")

    if not waiting.until(session, path, is_started, values["pod-running-timeout"]):
        raise CliError("timed out waiting for the condition")
    raise CliError(f"attaching is not there yet; see {session.program} logs {meta['name']}")
