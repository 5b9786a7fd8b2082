"""Where the verb stands among the words of a command line.

Job: find the first word that is no flag and no value of one; take a flag of the program out.
"""

from collections.abc import Sequence

from sampan.cli import catalog
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


def without_flag(words: Sequence[str], name: str) -> tuple[list[str], str]:
    """The words without a flag that is not the verb's own, and its value; empty where it is the
    verb's, or is not there."""
    position = verb_position(words)
    command = catalog.find(words[position]) if position >= 0 else None
    rest = list(words[position + 1 :]) if position >= 0 else []
    while command is not None and (at := verb_position(rest)) >= 0 and command.child(rest[at]):
        command, rest = command.child(rest[at]), rest[at + 1 :]
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
