"""The Accept header, as upstream's negotiation reads it. Pure.

Job: header → its clauses, the ones that are wanted more before the others; who reads the answers.
"""

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.query import first_value

_READERS = ("curl", "Wget", "Mozilla/5.0")  # whose answers people look at
_TRUE = ("1", "t", "T", "true", "TRUE", "True")  # as Go's ParseBool
MOST_INSERTED = 12  # clauses that are put in order one by one, as Go's sort does with few


@dataclass(frozen=True, slots=True)
class Clause:
    type: str
    subtype: str
    quality: float
    parameters: dict[str, str]

    def matches(self, type_: str, subtype: str) -> bool:
        if self.type == type_:
            return self.subtype in (subtype, "*")
        return self.type == self.subtype == "*"


def is_pretty(query: str, agent: str) -> bool:
    """Whether an answer is to have lines and indents."""
    wanted = first_value(query, "pretty")
    return wanted in _TRUE if wanted else agent.startswith(_READERS)


def parse_accept(header: str) -> list[Clause]:
    found = [clause for part in header.split(",") if (clause := _clause(part)) is not None]
    if len(found) > MOST_INSERTED:
        return sorted(found, key=lambda item: (-item.quality, item.type == "*"))
    for index in range(1, len(found)):
        at = index
        while at > 0 and _comes_before(found[at], found[at - 1]):
            found[at], found[at - 1] = found[at - 1], found[at]
            at -= 1
    return found


def _comes_before(one: Clause, other: Clause) -> bool:
    if one.quality > other.quality:
        return True
    if one.type != "*" and other.type == "*":
        return True
    return one.subtype != "*" and other.subtype == "*"


def _clause(text: str) -> Clause | None:
    """None: it is none."""
    media, *rest = text.strip(" ").split(";")
    type_, _, subtype = media.partition("/")
    type_, subtype = type_.strip(" "), subtype.strip(" ")
    if not subtype:
        if type_ != "*":
            return None
        subtype = "*"
    if "/" in subtype:
        return None
    quality, parameters = 1.0, {}
    for part in rest:
        key, _, value = part.partition("=")
        if not value or "=" in value:
            continue
        if key.strip(" ") == "q":
            quality = _number(value)
        else:
            parameters[key.strip(" ")] = value.strip(" ")
    return Clause(type_, subtype, quality, parameters)


def _number(text: str) -> float:
    """0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
