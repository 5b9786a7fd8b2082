"""The client's verbs: where each is, and what one line says about it.

Job: the table of verbs, in kubectl's groups and order; a verb's module is imported when asked for.
To add a verb: a file under verbs/ with COMMAND, and a row here.
"""

import importlib

from sampan.cli.command import Command

# group → (name, module, attribute, one line)
_V = "sampan.cli.verbs."
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...] = (
    ("Basic Commands (Beginner)", (
        ("create", "basic.create", "CREATE", "Create a resource from a file or from stdin"),
        ("run", "basic.run", "RUN", "Run a particular image on the cluster"),
    )),
    ("Basic Commands (Intermediate)", (
        ("get", "inspect.get", "GET", "Display one or many resources"),
        ("delete", "basic.delete", "DELETE", "Delete resources by file names, stdin, resources and names, or by resources and label selector"),
    )),
)  # fmt: skip
EXTRA: tuple[tuple[str, str, str, str], ...] = ()
_BY_NAME = {row[0]: row for group in GROUPS for row in group[1]} | {row[0]: row for row in EXTRA}


def names() -> list[str]:
    return [row[0] for group in GROUPS for row in group[1]]


def is_verb(name: str) -> bool:
    return name in _BY_NAME


def find(name: str) -> Command | None:
    row = _BY_NAME.get(name)
    if row is None:
        return None
    command: Command = getattr(importlib.import_module(_V + row[1]), row[2])
    return command
