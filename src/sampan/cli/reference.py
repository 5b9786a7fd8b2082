"""The client's verbs and flags as a document (docs/cli.md).

Job: markdown from the same tables that the parser uses. `python -m sampan.cli.reference` prints it.
"""

from sampan.cli import catalog
from sampan.cli.command import Command
from sampan.cli.flags import Flag
from sampan.cli.session import GLOBAL_FLAGS

HEAD = """\
# The client's verbs

Made from the parser by `python -m sampan.cli.reference > docs/cli.md`; a test keeps it true. Everything here works as
`sampan VERB`, and as `kubectl VERB` where `kubectl` is a link to `sampan`. The verbs around the cluster (`up`, `down`,
`status` and so on) are in the README.
"""


def text() -> str:
    lines = [HEAD]
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


if __name__ == "__main__":
    print(text(), end="")
