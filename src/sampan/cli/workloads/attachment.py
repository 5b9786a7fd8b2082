"""Attaching to a pod that `run` has just made.

Job: wait until it runs, connect its streams (or show its log where it is over), give its exit code.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.rules import pods
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import waiting
from sampan.cli.session import Session
from sampan.cli.workloads import streams

PROMPT = "If you don't see a command prompt, try pressing enter."


def run_attached(session: Session, values: Values, pod: Obj, *, restart: str) -> int:
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
    latest: dict[str, Obj] = {}

    def is_started(obj: Obj | None) -> bool:
        if obj is None:
            raise CliError(f'pods "{meta["name"]}" not found')
        latest["pod"] = obj
        return pods.phase(obj) == "Running" or pods.is_terminal(obj)

    if not waiting.until(session, path, is_started, values["pod-running-timeout"]):
        raise CliError("timed out waiting for the condition")
    name = latest["pod"]["spec"]["containers"][0]["name"]
    if latest["pod"]["status"]["phase"] == "Running":
        if not values["quiet"] and values["stdin"]:
            session.complain(PROMPT)
        wanted = streams.Wanted(bool(values["stdin"]), True, True, bool(values["tty"]))
        try:
            streams.run(session, f"{path}/attach", [("container", name)], wanted)
        except (ApiError, CliError) as error:
            # A short program has ended between "Running" and the attach.
            session.complain(
                f"warning: couldn't attach to pod/{meta['name']}, "
                f"falling back to streaming logs: {error}"
            )
            _print_log(session, path, name)
    else:
        _print_log(session, path, name)
    if restart == "Always":
        return 0
    return _wait_for_end(session, path, values["pod-running-timeout"])


def _print_log(session: Session, path: str, container: str) -> None:
    out = session.io.raw_stdout()
    for chunk in session.api.stream(f"{path}/log", {"container": container}, accept="*/*"):
        out.write(chunk)
        out.flush()


def _wait_for_end(session: Session, path: str, seconds: float) -> int:
    """The exit code of the container, as soon as the node has said it."""
    codes: list[int] = []

    def is_over(obj: Obj | None) -> bool:
        for state in ((obj or {}).get("status") or {}).get("containerStatuses") or []:
            ended = (state.get("state") or {}).get("terminated")
            if ended is not None:
                codes.append(int(ended.get("exitCode") or 0))
        return obj is None or bool(codes)

    waiting.until(session, path, is_over, seconds)
    if codes and codes[0]:
        raise streams.CommandEnded(codes[0])
    return 0
