"""Semantic versions: `semver('1.2.3')`.

Job: parse, with or without tolerance; compare by the rules of semver.org.
Invariant: build metadata takes no part in order or equality.
"""

import re

from sampan.api.cel.language import cost
from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.types import opaque_type
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

_NAME = "kubernetes.Semver"
VERSIONS = Library("kubernetes.Semver", types=(opaque_type(_NAME),))
_PART = "(?:0|[1-9][0-9]*)"
_WORD = "[0-9A-Za-z-]+"
_FORM = lazy_pattern(
    rf"({_PART})\.({_PART})\.({_PART})(?:-({_WORD}(?:\.{_WORD})*))?(?:\+({_WORD}(?:\.{_WORD})*))?",
    re.ASCII,
)
_Key = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]


MOST_CHARACTERS = 256  # its numbers fit in 64 bits, and its words are few


@dataclass(frozen=True, slots=True)
class Semver:
    cel_type = opaque_type(_NAME)
    key: _Key  # in the order that versions have


def _parse(text: str) -> Semver:
    found = _FORM.fullmatch(text)
    words = found[4].split(".") if found is not None and found[4] else []
    leading = any(is_digits(word) and word != "0" and word[0] == "0" for word in words)
    if found is None or leading or len(text) > MOST_CHARACTERS:
        raise EvaluationError(f"Semver parse error during conversion from string: {text}")
    numbers = (int(found[1]), int(found[2]), int(found[3]))
    before = tuple(
        (not is_digits(word), int(word) if is_digits(word) else 0, word) for word in words
    )
    # A version with a pre-release part comes before the one without.
    return Semver((numbers, not words, before))


def _normal_form(text: str) -> str:
    """`v1.02` → `1.2.0`."""
    numbers, mark, rest = re.fullmatch(
        r"([^-+]*)([-+]?)(.*)", text.removeprefix("v"), re.S
    ).groups()  # type: ignore[union-attr]  # matches any text
    parts = [part.lstrip("0") or "0" if part else part for part in numbers.split(".")]
    if len(parts) < 3 and not mark:
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + mark + rest


@VERSIONS.function("semver", "string", to=_NAME, cost=cost.first_read)
@VERSIONS.function("semver", "string", "bool", to=_NAME, cost=cost.first_read)
def _semver(text: str, normalize: bool = False) -> Semver:
    return _parse(_normal_form(text) if normalize else text)


@VERSIONS.function("isSemver", "string", to="bool", cost=cost.first_read)
@VERSIONS.function("isSemver", "string", "bool", to="bool", cost=cost.first_read)
def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


@VERSIONS.member(_NAME, "major", to="int")
def _major(version: Semver) -> int:
    return version.key[0][0]


@VERSIONS.member(_NAME, "minor", to="int")
def _minor(version: Semver) -> int:
    return version.key[0][1]


@VERSIONS.member(_NAME, "patch", to="int")
def _patch(version: Semver) -> int:
    return version.key[0][2]


@VERSIONS.member(_NAME, "isLessThan", _NAME, to="bool")
def _is_less(version: Semver, other: Semver) -> bool:
    return version.key < other.key


@VERSIONS.member(_NAME, "isGreaterThan", _NAME, to="bool")
def _is_greater(version: Semver, other: Semver) -> bool:
    return version.key > other.key


@VERSIONS.member(_NAME, "compareTo", _NAME, to="int")
def _compare(version: Semver, other: Semver) -> int:
    return (version.key > other.key) - (version.key < other.key)
