"""The rules of an HTTPRoute as values.

Job: an HTTPRoute → its rules: what each matches, what its filters do, who answers. Pure.
Invariant: a rule with anything that is not served here is refused whole, never served in part.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, unquote

from sampan.api.cel.libraries.regex import compile_pattern
from sampan.api.objects import Obj, namespace_of
from sampan.core.durations import NANO, DurationError, parse_duration
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request
from sampan.network.gateway.filters import Filters, Unsupported, filters_of
from sampan.network.gateway.references import Reference

Test = Callable[[str], bool]
EXACT, PREFIX, PATTERN = "Exact", "PathPrefix", "RegularExpression"
_ANYTHING: Obj = {}
MOST_PARAMETERS = 1000  # of a query, that are looked at


@dataclass(frozen=True, slots=True)
class Match:
    path_type: str = PREFIX
    path: str = ""  # a prefix without its last slash
    pattern: Test | None = None
    method: str = ""
    headers: tuple[tuple[str, Test], ...] = ()
    parameters: tuple[tuple[str, Test], ...] = ()

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of two with the same path the lower one comes first."""
        return -bool(self.method), -len(self.headers), -len(self.parameters)

    def accepts(self, request: Request) -> bool:
        """Of a request whose path fits."""
        if self.method and self.method != request.method:
            return False
        if not all(
            name in request.headers and test(request.headers[name]) for name, test in self.headers
        ):
            return False
        if not self.parameters:
            return True
        given = _parameters(request.query)
        return all(name in given and test(given[name]) for name, test in self.parameters)


@dataclass(frozen=True, slots=True)
class BackendRef:
    kind: str  # with its group, where that is not the core one
    reference: Reference
    port: int
    weight: int
    filters: Filters


@dataclass(frozen=True, slots=True)
class Rule:
    matches: tuple[Match, ...]
    filters: Filters
    backends: tuple[BackendRef, ...]
    answer_seconds: float | None  # None: as it is for all


def rules_of(route: Obj) -> tuple[list[Rule], list[str]]:
    """Those that are served, and of each other one what is not supported."""
    rules, refused = [], []
    for index, entry in enumerate((route.get("spec") or {}).get("rules") or ()):
        try:
            rules.append(_rule(route, entry))
        except Unsupported as error:
            refused.append(f"spec.rules[{index}]: {error}")
    return rules, refused


def _rule(route: Obj, entry: Obj) -> Rule:
    for name in ("retry", "sessionPersistence"):
        if entry.get(name):
            raise Unsupported(f"{name} is not supported")
    matches = tuple(_match(each) for each in entry.get("matches") or [_ANYTHING])
    filters = filters_of(entry.get("filters") or ())
    backends = tuple(_backends(route, entry.get("backendRefs") or ()))
    for each in (filters, *(backend.filters for backend in backends)):
        _check_prefix(each, matches)
    return Rule(matches, filters, backends, _seconds(entry.get("timeouts") or {}))


def _check_prefix(filters: Filters, matches: Sequence[Match]) -> None:
    changes = [filters.path, filters.redirect.path if filters.redirect else None]
    if any(change is not None and change.prefix is not None for change in changes) and any(
        match.path_type != PREFIX for match in matches
    ):
        raise Unsupported("ReplacePrefixMatch is for matches of type PathPrefix")


def _match(entry: Obj) -> Match:
    path = entry.get("path") or {}
    kind, value = path.get("type") or PREFIX, str(path.get("value") or "/")
    if kind not in (EXACT, PREFIX, PATTERN):
        raise Unsupported(f"path matches of type {kind} are not supported")
    plain = value if kind == PATTERN else unquote(value)
    return Match(
        kind,
        plain.removesuffix("/") if kind == PREFIX else plain,
        _pattern(value) if kind == PATTERN else None,
        entry.get("method") or "",
        tuple(_tests(entry.get("headers") or (), str.lower)),
        tuple(_tests(entry.get("queryParams") or (), str)),
    )


def _tests(entries: Sequence[Obj], spelled: Callable[[str], str]) -> Iterator[tuple[str, Test]]:
    """Of several for one name the first counts."""
    seen: set[str] = set()
    for entry in entries:
        name, value = spelled(str(entry.get("name"))), str(entry.get("value") or "")
        kind = entry.get("type") or EXACT
        if kind not in (EXACT, PATTERN):
            raise Unsupported(f"matches of type {kind} are not supported")
        if name not in seen:
            seen.add(name)
            yield name, _pattern(value) if kind == PATTERN else value.__eq__


def _pattern(text: str) -> Test:
    """The whole text must match, in linear time."""
    try:
        found = compile_pattern(f"^(?:{text})$")
    except ValueError as error:
        raise Unsupported(f"{text!r} is no regular expression: {error}") from error
    return found.matches


def _backends(route: Obj, entries: Sequence[Obj]) -> Iterator[BackendRef]:
    home = namespace_of(route)
    for entry in entries:
        group, kind = entry.get("group") or "", entry.get("kind") or "Service"
        filters = filters_of(entry.get("filters") or ())
        if filters.redirect is not None:
            raise Unsupported("RequestRedirect is no filter of backendRefs")
        weight = entry.get("weight")
        yield BackendRef(
            f"{kind}.{group}" if group else kind,
            Reference(
                "HTTPRoute", home, kind, entry.get("namespace") or home, entry.get("name") or ""
            ),
            entry.get("port") or 0,
            1 if weight is None else weight,
            filters,
        )


def _seconds(timeouts: Obj) -> float | None:
    """The shorter one; 0 s is none."""
    try:
        given = [parse_duration(timeouts[name]) / NANO for name in timeouts]
    except DurationError as error:
        raise Unsupported(f"timeouts: {error}") from error
    return min((seconds for seconds in given if seconds), default=None)


def _parameters(query: str) -> Mapping[str, str]:
    """Of one that is repeated the first counts."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return {}
    return dict(reversed(pairs))
