"""A command: its name, its words of help, its flags and what it does.

Job: the tree of commands, the way from words to a command, and the help texts.
Invariant: no verb's module is imported before that verb is asked for: a start stays cheap.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from sampan.cli.flags import Flag, Values
from sampan.core.durations import NANO, duration_text
from sampan.core.fast_dataclass import dataclass

if TYPE_CHECKING:
    from sampan.cli.session import Session

NAME_WIDTH = 11  # of a column of names, at least
_OF_TYPES = ("annotate", "describe", "explain", "get")  # whose help says where types are listed

Run = Callable[["Session", Values], "int | None"]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    use: str  # the usage line after the program's name
    short: str
    run: Run | None = None
    flags: tuple[Flag, ...] = ()
    children: "tuple[Command, ...]" = ()
    aliases: tuple[str, ...] = ()
    interspersed: bool = True
    failure_code: int = 1  # when it could not do what it is for
    # Without a runner or for a wrong child: print the help and fail, as kubectl's groups do; one
    # of them does it on standard output.
    is_helpful: bool = False
    hidden: bool = False

    def child(self, word: str) -> "Command | None":
        for command in self.children:
            if word == command.name or word in command.aliases:
                return command
        return None


def help_text(command: Command, program: str, path: str) -> str:
    """Short text, aliases, examples, children, flags, usage: kubectl's order."""
    name = path.removeprefix(f"{program} ")
    lines = [command.short.rstrip(".") + ".", ""]
    if name in _OF_TYPES:
        types = f'Use "{program} api-resources" for a complete list of supported resources.'
        lines += [types, ""]
    if command.aliases:
        lines += ["Aliases:", ", ".join((command.name, *command.aliases)), ""]
    lines += _example_lines(name, program)
    children = [child for child in command.children if not child.hidden]
    if children:
        width = max(NAME_WIDTH, *(len(child.name) for child in children))
        lines += ["Available Commands:"]
        lines += [f"  {child.name:<{width}}   {child.short}" for child in children]
        lines += [""]
    flags = [flag for flag in command.flags if not flag.hidden and not flag.deprecated]
    if flags:
        lines += ["Options:", *flag_lines(flags), ""]
    lines += [usage_text(command, program, path), ""] if command.use else []
    if children:
        lines += [f'Use "{path} <command> --help" for more information about a given command.']
    if command.use:
        options = f'Use "{program} options" for a list of global command-line options'
        lines += [f"{options} (applies to all commands)."]
    return "\n".join(lines) + "\n"


def _example_lines(name: str, program: str) -> list[str]:
    from sampan.cli.examples import EXAMPLES

    lines: list[str] = []
    for what, typed in EXAMPLES.get(name, ()):
        line = typed if "{program}" in typed else f"{{program}} {typed}"
        line = line.replace("{program}", program)
        lines += ["  " if lines else "Examples:", f"  # {what}", f"  {line}"]
    return [*lines, ""] if lines else []


def usage_text(command: Command, program: str, path: str) -> str:
    return f"Usage:\n  {program} {command.use}".rstrip()


def flag_lines(flags: Iterable[Flag]) -> list[str]:
    import textwrap

    lines = []
    for flag in sorted(flags, key=lambda flag: flag.name):
        short = f"-{flag.short}, " if flag.short else ""
        lines.append(f"    {short}--{flag.name}={_default(flag)}:")
        if flag.usage:
            lines += textwrap.wrap(flag.usage, 90, initial_indent="\t", subsequent_indent="\t")
        lines.append("")
    return lines[:-1]


def _default(flag: Flag) -> str:
    if flag.default is None:
        return ""
    if flag.kind == "bool":
        return "true" if flag.default else "false"
    if flag.kind in ("array", "slice", "map"):
        return "[" + ",".join(flag.default or []) + "]"
    if flag.kind == "duration":
        return duration_text(round(flag.default * NANO))
    if flag.kind in ("string", "tristate"):
        return f"'{flag.default}'"
    return str(flag.default)


def close_words(word: str, known: Sequence[str], *, distance: int = 2) -> list[str]:
    """What somebody may have meant: few letters away, or the beginning of it."""
    return [
        name
        for name in known
        if edit_distance(word.lower(), name.lower()) <= distance
        or name.lower().startswith(word.lower())
    ]


def edit_distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            cost = before if a == b else before + 1
            before, row[j] = row[j], min(cost, row[j] + 1, row[j - 1] + 1)
    return row[-1]
