"""`attach`: the streams of a process that already runs.

Job: find pod and container, connect.
"""

from sampan.api.objects import Obj
from sampan.api.rules import pods
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.cli.workloads import pods_of, streams

NOTICE = (
    "All commands and output from this session will be recorded in container logs, including "
    "credentials and sensitive information passed through the command prompt.\n"
    "If you don't see a command prompt, try pressing enter."
)


def run(session: Session, values: Values) -> int:
    words = values.arguments
    session.check_context()
    pods_of.check_timeout(values)
    _ = session.connection
    if not words:
        raise CliError("at least 1 argument is required for attach")
    if len(words) > 2:
        raise CliError(
            f"expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw {len(words)}: "
            f"[{' '.join(words)}]"
        )
    kind, name = words if len(words) == 2 else ("pods", words[0])
    info = pods_of.named(session, kind, [name])
    pod = pods_of.attachable(session, info, values["pod-running-timeout"])
    if pods.is_terminal(pod):
        phase = pods.phase(pod)
        raise CliError(f"cannot attach a container in a completed pod; current phase is {phase}")
    wanted = values.text("container")
    if wanted and wanted not in pods_of.container_names(pod):
        name = pod["metadata"]["name"]
        raise CliError(
            f"cannot attach to the container: container {wanted} not found in pod {name}"
        )
    container = pods_of.container_of(session, pod, wanted, quiet=values["quiet"])
    tty = _has_tty(session, values, pod, container)
    if not values["quiet"]:
        session.complain(NOTICE)
    path = pods_of.pod_path(pod["metadata"]["namespace"], pod["metadata"]["name"]) + "/attach"
    asked = streams.Wanted(bool(values["stdin"]), True, True, tty)
    return streams.run(session, path, [("container", container)], asked)


def _has_tty(session: Session, values: Values, pod: Obj, name: str) -> bool:
    """Whatever was asked for, it is as the container has it."""
    spec = pod["spec"]
    own = next(
        one
        for field in ("containers", "initContainers", "ephemeralContainers")
        for one in spec.get(field) or []
        if one["name"] == name
    )
    if values["tty"] and not own.get("tty") and not values["quiet"]:
        session.complain(f"error: Unable to use a TTY - container {name} did not allocate one")
    return bool(own.get("tty")) and session.io.stdin_is_terminal()


ATTACH = Command(
    "attach",
    "attach (POD | TYPE/NAME) -c CONTAINER [options]",
    "Attach to a process that is already running inside an existing container.",
    run,
    (
        Flag("container", short="c", usage="Container name."),
        pods_of.pod_timeout(),
        switch("quiet", "Only print output from the remote session.", short="q"),
        switch("stdin", "Pass stdin to the container.", short="i"),
        switch("tty", "Stdin is a TTY.", short="t"),
    ),
)
