"""`exec`: a command in a container.

Job: find pod and container, connect the streams, end with the command's exit code.
"""

from sampan.api.objects import Obj
from sampan.api.rules import pods
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.cli.workloads import pods_of, streams


def run(session: Session, values: Values) -> int:
    words, dash = values.arguments, values.dash
    name = words[0] if words and dash != 0 else ""
    command = words[dash:] if dash >= 0 else []
    if dash < 0 and (len(words) > 1 or (words and values["filename"])):
        raise UsageError(
            "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead"
        )
    session.check_context()
    pods_of.check_timeout(values)
    _ = session.connection
    if not name and not values["filename"]:
        raise CliError("pod, type/name or --filename must be specified")
    if not command:
        raise CliError("you must specify at least one command for the container")
    info = pods_of.named(session, "pods", [name] if name else [], values)
    pod = pods_of.attachable(session, info, values["pod-running-timeout"])
    check_phase(pod)
    container = pods_of.container_of(session, pod, values.text("container"), quiet=values["quiet"])
    tty = bool(values["tty"])
    if tty and not session.io.stdin_is_terminal():
        session.complain("Unable to use a TTY - input is not a terminal or the right kind of file")
        tty = False
    query = [("command", word) for word in command] + [("container", container)]
    path = pods_of.pod_path(pod["metadata"]["namespace"], pod["metadata"]["name"]) + "/exec"
    wanted = streams.Wanted(bool(values["stdin"]), True, True, tty)
    return streams.run(session, path, query, wanted)


def check_phase(pod: Obj) -> None:
    if pods.is_terminal(pod):
        phase = pods.phase(pod)
        raise CliError(f"cannot exec into a container in a completed pod; current phase is {phase}")


EXEC = Command(
    "exec",
    "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...] [options]",
    "Execute a command in a container.",
    run,
    (
        Flag("container", short="c", usage="Container name."),
        Flag("filename", "slice", [], "To use to exec into the resource.", short="f"),
        pods_of.pod_timeout(),
        switch("quiet", "Only print output from the remote session.", short="q"),
        switch("stdin", "Pass stdin to the container.", short="i"),
        switch("tty", "Stdin is a TTY.", short="t"),
    ),
)
