"""The client's verbs and flags as a part of a document (docs/cli.md; cmd/reference.py has the rest).

Job: markdown from the same tables that the parser uses.
"""

from sampan.cli import catalog
from sampan.cli.command import Command
from sampan.cli.flags import Flag
from sampan.cli.session import GLOBAL_FLAGS


def text() -> str:
    lines = []
    for title, rows in catalog.GROUPS:
        lines.append(f"## {title}\n")
        for name, *_ in rows:
            command = catalog.find(name)
            assert command is not None
            lines += _command(command, name)
    lines += ["## Flags of every verb\n", *(_flag(flag) for flag in _visible(GLOBAL_FLAGS)), ""]
    return "\n".join(lines)


def _command(command: Command, path: str) -> list[str]:
    lines = [f"### {path}\n", f"{command.short.rstrip('.')}.\n", f"    sampan {command.use}\n"]
    flags = _visible(command.flags)
    if flags:
        lines += [*(_flag(flag) for flag in flags), ""]
    for child in command.children:
        if not child.hidden:
            lines += _command(child, f"{path} {child.name}")
    return lines


def _visible(flags: tuple[Flag, ...]) -> list[Flag]:
    shown = [flag for flag in flags if not flag.hidden and not flag.deprecated]
    return sorted(shown, key=lambda flag: flag.name)


def _flag(flag: Flag) -> str:
    short = f"`-{flag.short}`, " if flag.short else ""
    return f"- {short}`--{flag.name}` {flag.usage}".rstrip()
