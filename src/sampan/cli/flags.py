"""Flags as pflag reads them: `-n x`, `-nx`, `-it`, `--flag=value`, `--flag value`, `--`.

Job: a command's flags and the words after it become values and arguments.
Invariant: messages are pflag's own, because scripts and people look for them.
Invariant: flags and arguments may be mixed; after `--` nothing is a flag.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sampan.cli.errors import CliError, FlagError
from sampan.core.durations import NANO, parse_duration
from sampan.core.fast_dataclass import dataclass

TRUE = {"1", "t", "T", "true", "TRUE", "True"}
FALSE = {"0", "f", "F", "false", "FALSE", "False"}


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    kind: str = "string"
    default: Any = ""
    usage: str = ""
    short: str = ""
    bare: str | None = None  # its value when it is given without one
    deprecated: str = ""
    hidden: bool = False
    required: bool = False

    @property
    def spelled(self) -> str:
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


class Values:
    """What was given: by flag name; what was not given has its default."""

    def __init__(self, flags: Sequence[Flag]) -> None:
        self.flags = {flag.name: flag for flag in flags}
        self._values = {flag.name: flag.default for flag in flags}
        self._changed: dict[str, None] = {}
        self.arguments: list[str] = []
        self.dash = -1  # how many arguments came before `--`; -1: there was none
        self.notices: list[str] = []  # deprecations, for standard error

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> Any:
        """None where the verb has no such flag."""
        return self._values.get(name)

    def text(self, name: str) -> str:
        return str(self._values[name])

    def is_set(self, name: str) -> bool:
        """Whether the flag was given at all."""
        return name in self._changed

    def given(self) -> list[str]:
        return list(self._changed)

    def put(self, flag: Flag, value: Any) -> None:
        if flag.kind in ("array", "slice") and flag.name in self._changed:
            value = [*self._values[flag.name], *value]
        elif flag.kind == "map" and flag.name in self._changed:
            value = {**self._values[flag.name], **value}
        self._values[flag.name] = value
        self._changed[flag.name] = None


def parse(
    flags: Sequence[Flag],
    words: Sequence[str],
    *,
    interspersed: bool = True,
    presets: Sequence[tuple[str, str]] = (),
) -> Values:
    """`presets` are values that somebody else gives first, by the names of flags."""
    values = Values(flags)
    for name, text in presets:
        _put(values, values.flags[name], text, values.flags[name].spelled)
    shorts = {flag.short: flag for flag in flags if flag.short}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            values.dash = len(values.arguments)
            values.arguments += rest
            break
        if not word.startswith("-") or word == "-":
            values.arguments.append(word)
            if not interspersed:
                values.arguments += rest
                break
        elif word.startswith("--"):
            _take_long(values, word, rest)
        else:
            _take_shorts(values, shorts, word, rest)
    return values


def check_required(values: Values) -> None:
    missing = [
        flag.name
        for flag in sorted(values.flags.values(), key=lambda flag: flag.name)
        if flag.required and not values.is_set(flag.name)
    ]
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise CliError(f"required flag(s) {names} not set")


def _take_long(values: Values, word: str, rest: list[str]) -> None:
    name, equals, text = word[2:].partition("=")
    if not name or name.startswith("-"):
        raise FlagError(f"bad flag syntax: {word}")
    flag = values.flags.get(name.replace("_", "-"))
    if name == "help" and flag is None:
        raise HelpAsked
    if flag is None:
        raise FlagError(f"unknown flag: --{name}")
    if equals:
        _put(values, flag, text, f"{flag.spelled}")
    elif flag.bare is not None:
        _put(values, flag, flag.bare, flag.spelled)
    elif rest:
        _put(values, flag, rest.pop(0), flag.spelled)
    else:
        raise FlagError(f"flag needs an argument: --{name}")


def _take_shorts(values: Values, shorts: dict[str, Flag], word: str, rest: list[str]) -> None:
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = shorts.get(letter)
        if flag is None and letter == "h":
            raise HelpAsked
        if flag is None:
            raise FlagError(f"unknown shorthand flag: {_quote(letter)} in -{letter}{letters}")
        if letters.startswith("="):
            _put(values, flag, letters[1:], flag.spelled)
            return
        if flag.bare is not None:
            _put(values, flag, flag.bare, flag.spelled)
        elif letters:
            _put(values, flag, letters, flag.spelled)
            return
        elif rest:
            _put(values, flag, rest.pop(0), flag.spelled)
        else:
            raise FlagError(f"flag needs an argument: {_quote(letter)} in -{letter}{letters}")


class HelpAsked(Exception):  # no error: what -h raises on its way to the help
    """-h or --help was given."""


def _quote(letter: str) -> str:
    return f"'{letter}'"


def _put(values: Values, flag: Flag, text: str, spelled: str) -> None:
    try:
        value = _READERS[flag.kind](text)
    except ValueError as error:
        shown = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        raise FlagError(f'invalid argument {shown} for "{spelled}" flag: {error}') from error
    if flag.deprecated:
        values.notices.append(f"Flag --{flag.name} has been deprecated, {flag.deprecated}")
    values.put(flag, value)


def truth(text: str) -> bool:
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def integer(text: str, bits: int = 64, function: str = "ParseInt") -> int:
    """As Go's strconv with base 0 (flags) and its complaints."""
    try:
        number = int(text, 0) if not re.fullmatch(r"[+-]?0[0-7]+", text) else int(text, 8)
        if text != text.strip() or "_" in text:
            raise ValueError
    except ValueError:
        raise ValueError(f'strconv.{function}: parsing "{text}": invalid syntax') from None
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f'strconv.{function}: parsing "{text}": value out of range')
    return number


def decimal(text: str) -> int:
    """As Go's strconv.Atoi."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    if not -(2**63) <= int(text) < 2**63:
        raise ValueError(f'strconv.Atoi: parsing "{text}": value out of range')
    return int(text)


def duration(text: str) -> float:
    """Seconds, as Go's time.ParseDuration reads them."""
    return parse_duration(text) / NANO


def comma_list(text: str) -> list[str]:
    """One line of CSV, as pflag's slices are."""
    if not text:
        return []
    if '"' not in text:
        return text.split(",")
    import csv

    return next(csv.reader([text]))


def pairs(text: str) -> dict[str, str]:
    """`a=b,c=d`, as pflag's maps are."""
    parts = [text.strip('"')] if text.count("=") < 2 else comma_list(text)
    if "=" not in text:
        raise ValueError(f"{text} must be formatted as key=value")
    found = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part} must be formatted as key=value")
        found[key] = value
    return found


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "bool": truth,
    "int": integer,
    "int32": lambda text: integer(text, 32),
    "int64": integer,
    "duration": duration,
    "array": lambda text: [text],
    "slice": comma_list,
    "tristate": str,
    "map": pairs,
}
