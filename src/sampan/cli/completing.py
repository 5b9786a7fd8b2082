"""What could come next on the command line.

Job: verbs, their commands, flags, kinds and names of objects, for the shells' completion.
"""

from sampan.api.errors import ApiError
from sampan.cli import catalog
from sampan.cli.command import Command
from sampan.cli.errors import CliError
from sampan.cli.session import GLOBAL_FLAGS, Session

BY_KIND = {
    "get", "describe", "delete", "edit", "label", "annotate", "scale", "patch", "expose", "wait",
    "rollout", "set", "autoscale",
}  # fmt: skip
BY_POD = {"logs", "exec", "attach", "port-forward", "debug", "cp"}


def candidates(session: Session, words: list[str], extra: tuple[str, ...] = ()) -> list[str]:
    """`words` without the program; the last one is what is being typed."""
    *before, last = words or [""]
    if not before:
        return [name for name in (*catalog.names(), *extra) if name.startswith(last)]
    command = catalog.find(before[0])
    if command is None:
        return []
    command, rest = _descend(command, before[1:])
    if last.startswith("-"):
        return [flag for flag in _flags(command) if flag.startswith(last)]
    if command.children and not rest:
        return [child.name for child in command.children if child.name.startswith(last)]
    try:
        return [word for word in _objects(session, before[0], rest) if word.startswith(last)]
    except (ApiError, CliError, OSError):
        return []


def _descend(command: Command, words: list[str]) -> tuple[Command, list[str]]:
    """Into the group's command that the words name; and the words after it."""
    while words:
        child = command.child(words[0])
        if child is None:
            break
        command, words = child, words[1:]
    return command, words


def _flags(command: Command) -> list[str]:
    return [f"--{flag.name}" for flag in (*command.flags, *GLOBAL_FLAGS)]


def _objects(session: Session, verb: str, rest: list[str]) -> list[str]:
    words = [word for word in rest if not word.startswith("-")]
    if verb in BY_POD:
        return _names(session, "pods") if not words else []
    if verb not in BY_KIND:
        return []
    if not words:
        return [resource.plural for resource in session.discovery.preferred()]
    return _names(session, words[0])


def _names(session: Session, kind: str) -> list[str]:
    resource = session.discovery.find(kind)
    answer = session.api.json("GET", resource.path(session.namespace), {"limit": "200"})
    return [item["metadata"]["name"] for item in answer.get("items") or []]
