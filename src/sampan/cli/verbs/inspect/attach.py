"""`attach`: the streams of a process that already runs.

Job: find pod and container, connect.
"""

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
    if not values.arguments:
        raise CliError("at least 1 argument is required for attach")
    if len(values.arguments) > 2:
        raise CliError(f"expected POD, TYPE/NAME, or TYPE NAME, got {len(values.arguments)}")
    pod = pods_of.attachable(session, values.arguments, values["pod-running-timeout"])
    name = pods_of.container_of(session, pod, values.text("container"), quiet=values["quiet"])
    if pods.is_terminal(pod):
        phase = pods.phase(pod)
        raise CliError(f"cannot attach a container in a completed pod; current phase is {phase}")
    if not values["quiet"]:
        session.complain(NOTICE)
    path = pods_of.pod_path(pod["metadata"]["namespace"], pod["metadata"]["name"]) + "/attach"
    wanted = streams.Wanted(bool(values["stdin"]), True, True, bool(values["tty"]))
    return streams.run(session, path, [("container", name)], wanted)


ATTACH = Command(
    "attach",
    "attach (POD | TYPE/NAME) -c CONTAINER [options]",
    "Attach to a process that is already running inside an existing container.",
    run,
    (
        Flag("container", short="c", usage="Container name."),
        pods_of.POD_TIMEOUT,
        switch("quiet", "Only print output from the remote session.", short="q"),
        switch("stdin", "Pass stdin to the container.", short="i"),
        switch("tty", "Stdin is a TTY.", short="t"),
    ),
)
