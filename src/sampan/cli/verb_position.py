"""Where the verb stands among the words of a command line.

Job: find the first word that is no flag and no value of one, and the command that it and the
    next ones name, with all its flags; take a flag of the program out.
"""

from collections.abc import Sequence

from sampan.cli import catalog
from sampan.cli.command import Command
from sampan.cli.flags import Flag
from sampan.cli.session import GLOBAL_FLAGS

_VALUELESS = {flag.name for flag in GLOBAL_FLAGS if flag.bare is not None}


def verb_position(words: Sequence[str]) -> int:
    """Where the verb is: the first word that is neither a flag nor a flag's value."""
    shorts = {flag.short: flag for flag in GLOBAL_FLAGS if flag.short}
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return -1
        if not word.startswith("-") or word == "-":
            return at
        if word.startswith("--"):
            if "=" not in word and word[2:] not in _VALUELESS and word != "--help":
                at += 1
        elif len(word) == 2 and word[1] in shorts and shorts[word[1]].bare is None:
            at += 1
        at += 1
    return -1


def flags_of(command: Command | None) -> list[Flag]:
    """The command's flags and the global ones, without the names and letters of its own."""
    own = command.flags if command is not None else ()
    names, shorts = {flag.name for flag in own}, {flag.short for flag in own if flag.short}
    shared = [
        flag if flag.short not in shorts else Flag(
            flag.name, flag.kind, flag.default, flag.usage, "", flag.bare
        )
        for flag in GLOBAL_FLAGS
        if flag.name not in names
    ]  # fmt: skip
    return [*own, *shared]


def located(words: Sequence[str]) -> tuple[list[str], Command | None, list[str]]:
    """The names that lead to a command, the command, and the words without the names. No command:
    there is no verb, or nobody knows the one there is, which is then the path."""
    at = verb_position(words)
    if at < 0:
        return [], None, list(words)
    command = catalog.find(words[at])
    path = [command.name if command is not None else words[at]]
    rest = [*words[:at], *words[at + 1 :]]
    inner, command, rest = descended(command, rest) if command is not None else ([], None, rest)
    return [*path, *inner], command, rest


def descended(command: Command, words: list[str]) -> tuple[list[str], Command, list[str]]:
    """Into the group's command that the next word names; its names below, and the other words."""
    path: list[str] = []
    while command.children:
        at = verb_position(words)
        child = command.child(words[at]) if at >= 0 else None
        if child is None:
            break
        path.append(child.name)
        command, words = child, [*words[:at], *words[at + 1 :]]
    return path, command, words


def without_flag(words: Sequence[str], name: str) -> tuple[list[str], str]:
    """The words without a flag that is not the verb's own, and its value; empty where it is the
    verb's, or is not there."""
    position = verb_position(words)
    _, command, _ = located(words)
    is_own = command is not None and any(flag.name == name for flag in command.flags)
    kept: list[str] = []
    value, at = "", 0
    while at < len(words):
        found, equals, text = words[at].partition("=")
        is_before = position >= 0 and at < position
        if words[at] == "--":
            kept += words[at:]
            break
        if found == f"--{name}" and (is_before or not is_own):
            value = text if equals else "".join(words[at + 1 : at + 2])
            at += 1 if equals else 2
            continue
        kept.append(words[at])
        at += 1
    return kept, value
