"""Filters of HTTPRoutes: what they change of a request and of its answer.

Job: the filters of a rule or a backend → what they do; a request → headers, path, Location. Pure.
Invariant: a filter is never passed over: a rule with one that is not known here is refused whole.
Invariant: no filter changes how a message is framed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import quote

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Headers
from sampan.core.patterns import lazy_pattern

_FRAMING = frozenset(
    {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_STATUSES = frozenset({301, 302, 303, 307, 308})
_STANDARD = {"http": 80, "https": 443}
_PLAIN = "/!$&'()*+,;=:@~"  # what a path has as it is, beside letters and digits
_TOKEN = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOSTNAME = lazy_pattern(r"[0-9A-Za-z.-]+")


class Unsupported(ValueError):
    """A rule has what is not served here; the message says what."""


@dataclass(frozen=True, slots=True)
class HeaderChanges:
    """Names in lower case."""

    set: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    remove: frozenset[str] = frozenset()

    def of_request(self, headers: Mapping[str, str]) -> dict[str, str]:
        changed = {name: value for name, value in headers.items() if name not in self.remove}
        changed.update(self.set)
        for name, value in self.add:
            changed[name] = f"{changed[name]},{value}" if name in changed else value
        return changed

    def of_answer(self, headers: Headers) -> Headers:
        gone = self.remove | {name for name, _ in self.set}
        kept = [line for line in headers if line[0] not in gone]
        return [*kept, *self.set, *self.add]


@dataclass(frozen=True, slots=True)
class PathChange:
    full: str | None = None
    prefix: str | None = None  # instead of the prefix by which the rule matched

    def of(self, path: str, plain: str, matched: str) -> str:
        """`path` as it was sent, `plain` as it was compared, `matched` without its last slash."""
        if self.full is not None:
            return self.full
        as_sent = path.startswith(matched) and path[len(matched) : len(matched) + 1] in ("", "/")
        rest = path[len(matched) :] if as_sent else quote(plain[len(matched) :], safe=_PLAIN)
        start = (self.prefix or "").removesuffix("/")
        return f"{start}{rest}" or "/"


@dataclass(frozen=True, slots=True)
class Redirect:
    scheme: str = ""
    hostname: str = ""
    path: PathChange | None = None
    port: int = 0
    status: int = 302

    def location(
        self, scheme: str, host: str, path: str, query: str, served: Mapping[int, int]
    ) -> str:
        """`served`: where a Gateway's ports are on this machine; 0 is that of the request."""
        wanted = self.scheme or scheme
        port = self.port or (_STANDARD.get(wanted, 0) if self.scheme else 0)
        port = served.get(port, port)
        told = "" if port == _STANDARD.get(wanted) else f":{port}"
        name = self.hostname or host
        authority = f"[{name}]" if ":" in name else name
        return f"{wanted}://{authority}{told}{path}{'?' if query else ''}{query}"


@dataclass(frozen=True, slots=True)
class Filters:
    request: HeaderChanges = HeaderChanges()
    answer: HeaderChanges = HeaderChanges()
    redirect: Redirect | None = None
    hostname: str = ""
    path: PathChange | None = None


def filters_of(entries: Iterable[Obj]) -> Filters:
    """Raises Unsupported."""
    found: dict[str, object] = {}
    for entry in entries:
        kind = str(entry.get("type"))
        read = _READERS.get(kind)
        if read is None:
            raise Unsupported(f"filters of type {kind} are not supported")
        found.update(read(entry))
    return Filters(**found)  # type: ignore[arg-type]  # each reader names its own fields


def _headers(field: str, name: str) -> Callable[[Obj], dict[str, object]]:
    def read(entry: Obj) -> dict[str, object]:
        given = entry.get(field) or {}
        changes = HeaderChanges(
            tuple(_pairs(given.get("set") or ())),
            tuple(_pairs(given.get("add") or ())),
            frozenset(_changeable(header) for header in given.get("remove") or ()),
        )
        return {name: changes}

    return read


def _pairs(entries: Sequence[Obj]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        value = str(entry.get("value") or "")
        if not value.isprintable():
            raise Unsupported(f"the value of header {entry.get('name')} is not printable")
        yield _changeable(str(entry.get("name"))), value


def _changeable(header: str) -> str:
    name = header.lower()
    if not _TOKEN.fullmatch(name):
        raise Unsupported(f"{header!r} is no name of a header")
    if name in _FRAMING:
        raise Unsupported(f"header {header} frames the message and cannot be changed")
    return name


def _redirect(entry: Obj) -> dict[str, object]:
    given = entry.get("requestRedirect") or {}
    scheme, status = given.get("scheme") or "", given.get("statusCode") or 302
    if scheme not in ("", *_STANDARD):
        raise Unsupported(f"redirects to scheme {scheme} are not supported")
    if status not in _STATUSES:
        raise Unsupported(f"redirects with status code {status} are not supported")
    path = _path_change(given.get("path"))
    redirect = Redirect(scheme, _hostname(given), path, given.get("port") or 0, status)
    return {"redirect": redirect}


def _rewrite(entry: Obj) -> dict[str, object]:
    given = entry.get("urlRewrite") or {}
    return {"hostname": _hostname(given), "path": _path_change(given.get("path"))}


def _hostname(given: Obj) -> str:
    name = str(given.get("hostname") or "")
    if name and not _HOSTNAME.fullmatch(name):
        raise Unsupported(f"{name!r} is no hostname")
    return name


def _path_change(given: Obj | None) -> PathChange | None:
    if not given:
        return None
    kind = given.get("type")
    if kind == "ReplaceFullPath":
        return PathChange(full=_path(given.get("replaceFullPath") or "/"))
    if kind == "ReplacePrefixMatch":
        return PathChange(prefix=_path(given.get("replacePrefixMatch") or ""))
    raise Unsupported(f"path modifiers of type {kind} are not supported")


def _path(given: str) -> str:
    return quote(given if given.startswith("/") or not given else f"/{given}", safe=f"{_PLAIN}%")


_READERS: Mapping[str, Callable[[Obj], dict[str, object]]] = {
    "RequestHeaderModifier": _headers("requestHeaderModifier", "request"),
    "ResponseHeaderModifier": _headers("responseHeaderModifier", "answer"),
    "RequestRedirect": _redirect,
    "URLRewrite": _rewrite,
}
