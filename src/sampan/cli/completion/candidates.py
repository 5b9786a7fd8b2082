"""What could come next on the command line: cobra's `__complete`.

Job: verbs, their commands, flags, flags' values and arguments, each with a word about it, and a
    directive for the shell.
Invariant: a server that does not answer, or may not be asked, gives no candidates and no noise.
"""

from collections.abc import Callable, Iterable, Mapping

from sampan.cli import catalog, flags
from sampan.cli.command import Command
from sampan.cli.completion.directives import (
    DEFAULT,
    FILE_EXTENSIONS,
    NO_FILES,
    NO_SPACE,
    names,
)
from sampan.cli.errors import CliError, FlagError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import GLOBAL_FLAGS, Io, Session
from sampan.cli.verb_position import flags_of, located, verb_position
from sampan.core.fast_dataclass import dataclass

PLUGINS = "Cleared global flags for plugin completion"
REPEATABLE = ("array", "slice", "map")
_NEEDED = ((["run"], "image"),)  # flags that the verb itself asks for


@dataclass(frozen=True, slots=True)
class Answer:
    candidates: list[str]  # each may have a tab and a description behind it
    directive: int = DEFAULT
    debug: tuple[str, ...] = ()


def tell(io: Io, answer: Answer) -> None:
    """For the shells: one candidate per line, then what may be done with them."""
    for line in answer.candidates:
        print(line.split("\n")[0].rstrip(), file=io.stdout)
    print(f":{answer.directive}", file=io.stdout)
    for line in answer.debug:
        print(f"[Debug] {line}", file=io.stderr)
    print(f"Completion ended with directive: {names(answer.directive)}", file=io.stderr)


def complete(session: Session, words: list[str]) -> Answer:
    """`words` without the program; the last one is what is being typed."""
    *before, last = words or [""]
    path, command, rest = _command(before)
    if command is None and path:
        why = f"unable to find a command for arguments: [{' '.join(before)}]"
        return Answer([], DEFAULT, (PLUGINS, f"[Error] {why}"))
    known = flags_of(command)
    try:
        flag, rest, typed = _flag_of_value(known, rest, last)
        is_interspersed = command is None or command.interspersed
        session.values = flags.parse(
            known, rest, interspersed=is_interspersed, presets=session.presets
        )
    except (FlagError, flags.HelpAsked) as error:
        why = f"Error while parsing flags from args [{' '.join(rest)}]: {error}"
        return Answer([], DEFAULT, (f"[Error] {why}",))
    is_after_dash = session.values.dash >= 0
    if flag is None and last.startswith("-") and "=" not in last and not is_after_dash:
        return _flag_names(command, path, session.values, last)
    if flag is not None and not is_after_dash:
        return _values(session, path, flag, typed)
    return _arguments(session, path, command, last)


def _command(before: list[str]) -> tuple[list[str], Command | None, list[str]]:
    """The path of names, the command, and the words without the names."""
    at = verb_position(before)
    if at < 0:
        return [], None, before
    name, rest = before[at], [*before[:at], *before[at + 1 :]]
    if name == "help":
        inner, found, _ = _command(rest)
        return ["help", *inner], found or Command("help", "", ""), []
    return located(before)


def _flag_of_value(
    known: list[Flag], before: list[str], last: str
) -> tuple[Flag | None, list[str], str]:
    """The flag whose value is being typed, if it is one; what stands before it; what is typed."""
    if last.startswith("-"):
        name, equals, typed = last.partition("=")
        if not equals:
            return None, before, last
        return _named(known, name), before, typed
    if not before or "--" in before:
        return None, before, last
    previous = before[-1]
    is_flag = len(previous) > 1 and previous.startswith("-") and "=" not in previous
    if not is_flag:
        return None, before, last
    flag = _named(known, previous)
    if flag.bare is not None:
        return None, before, last
    return flag, before[:-1], last


def _named(known: list[Flag], word: str) -> Flag:
    by_name = word[2:] if word.startswith("--") else ""
    letter = "" if by_name else word[-1]
    for flag in known:
        if (by_name and flag.name == by_name) or (letter and flag.short == letter):
            return flag
    if letter:
        raise FlagError(f"unknown shorthand flag: '{letter}' in {word}")
    raise FlagError(f"unknown flag: {word}")


def _flag_names(command: Command | None, path: list[str], values: Values, last: str) -> Answer:
    own = list(command.flags) if command is not None else []
    required = _required(path, own, values, last)
    groups = [[*GLOBAL_FLAGS], [*own, _help_flag(path)]]
    groups = groups if path else [groups[0] + groups[1]]
    found = required or [
        line
        for group in map(_sorted, groups)
        for flag in group
        if not flag.hidden and not flag.deprecated
        if not values.is_set(flag.name) or flag.kind in REPEATABLE
        for line in _flag_lines(flag, last)
    ]
    is_open = len(found) == 1 and found[0].endswith("=")
    return Answer(found, NO_SPACE if is_open else NO_FILES)


def _sorted(some: Iterable[Flag]) -> list[Flag]:
    return sorted(some, key=lambda flag: flag.name)


def _help_flag(path: list[str]) -> Flag:
    name = path[-1] if path else "kubectl"
    return Flag("help", "bool", False, f"help for {name}", short="h", bare="true")


def _flag_lines(flag: Flag, last: str) -> list[str]:
    names = [f"--{flag.name}", *([f"-{flag.short}"] if flag.short else [])]
    return [f"{name}\t{flag.usage}" for name in names if name.startswith(last)]


def _required(path: list[str], own: list[Flag], values: Values, last: str) -> list[str]:
    """A flag that must be given is offered before all others, even without a dash."""
    return [
        line
        for flag in _sorted(own)
        if (flag.required or (path, flag.name) in _NEEDED) and not values.is_set(flag.name)
        for line in _flag_lines(flag, last)
    ]


def _values(session: Session, path: list[str], flag: Flag, typed: str) -> Answer:
    from sampan.cli.completion import rules

    if flag.name == "filename":
        return Answer(["json", "yaml", "yml"], FILE_EXTENSIONS)
    ask = rules.of_flag(path, flag.name)
    if ask is None:
        return Answer([])
    return Answer(_begun(_asked(session, ask), typed), NO_FILES)


def _arguments(session: Session, path: list[str], command: Command | None, last: str) -> Answer:
    from sampan.cli.completion import rules

    is_help = path[:1] == ["help"]
    arguments = [] if is_help else session.values.arguments
    found, directive = [], DEFAULT
    if not arguments:
        children = _children(path[1:] if is_help else path, command, session.more_verbs)
        directive = NO_FILES if children else DEFAULT
        found += [f"{name}\t{line}" for name, line in children if name.startswith(last)]
    if command is None or is_help:
        return Answer(found, NO_FILES)
    found += _required(path, list(command.flags), session.values, last)
    rule = rules.of_command(path)
    if rule is None:
        return Answer(found, directive)
    words, directive = rules.asked(session, rule, arguments, last)
    return Answer([*found, *words], directive)


def _children(
    path: list[str], command: Command | None, more: Mapping[str, str]
) -> list[tuple[str, str]]:
    if path:
        inner = command.children if command is not None else ()
        return sorted((child.name, child.short) for child in inner if not child.hidden)
    lines = [(row[0], row[3]) for _, rows in catalog.GROUPS for row in rows]
    return sorted({*lines, ("help", "Help about any command"), *more.items()})


def _begun(words: list[str], typed: str) -> list[str]:
    return [word for word in words if word.startswith(typed)]


def _asked(session: Session, ask: Callable[[Session], list[str]]) -> list[str]:
    from sampan.api.errors import ApiError

    try:
        return ask(session)
    except (ApiError, CliError, OSError):
        return []
