"""What could come next on the command line.

Job: verbs, their commands, flags, kinds and names of objects, for the shells' completion.
"""

from sampan.api.errors import ApiError
from sampan.cli import catalog
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
    rest = before[1:]
    while command.children and rest and command.child(rest[0]):
        child = command.child(rest.pop(0))
        assert child is not None
        command = child
    if last.startswith("-"):
        flags = (*command.flags, *GLOBAL_FLAGS)
        return [f"--{flag.name}" for flag in flags if f"--{flag.name}".startswith(last)]
    if command.children and not rest:
        return [child.name for child in command.children if child.name.startswith(last)]
    try:
        return [word for word in _objects(session, before[0], rest) if word.startswith(last)]
    except (ApiError, CliError, OSError):
        return []


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
