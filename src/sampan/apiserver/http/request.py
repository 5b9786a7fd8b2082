"""From method, path and query to what is asked. Pure.

Job: RequestInfo as upstream builds it (verb, resource, namespace, name, subresource), and the query
    as Options.
Invariant: a path that could mean two things (empty or dotted segments, encoded slashes) is refused,
    never cleaned up.
"""

from collections.abc import Callable
from urllib.parse import unquote

from sampan.api import resources
from sampan.api.errors import (
    UNKNOWN_PATH,
    ApiError,
    BadRequest,
    MethodNotAllowed,
    UnknownGroup,
    UnknownPath,
    method_not_supported,
    not_found,
)
from sampan.api.resources import Resource
from sampan.api.served import served_resources
from sampan.core.durations import NANO, DurationError, parse_duration
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.query import first_value, query_values

MOST_SECONDS = 60.0  # that a request may take, whatever it asks for
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
          "DELETE": "delete"}  # fmt: skip
_COLLECTION = {"get": "list", "delete": "deletecollection"}
_NAMED = ("get", "update", "patch", "delete")  # of one object; all others are of a collection


@dataclass(frozen=True, slots=True)
class RequestInfo:
    verb: str
    path: str
    resource: Resource | None = None  # None: a path outside the resources
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""  # what follows nodes/NAME/proxy/
    elsewhere: bool = False  # what it names is not known here: another server's, or nobody's


class NotRouted(Exception):
    """Nothing is served there, or not by this method. `info`: what was asked for, all the same: who
    may not ask is told that, and nothing else."""

    def __init__(self, info: RequestInfo, error: ApiError) -> None:
        super().__init__(str(error))
        self.info, self.error = info, error


Lookup = Callable[[str, str, str], Resource | None]  # group, version, plural


def unknown_path() -> UnknownPath:
    return UnknownPath(UNKNOWN_PATH, details={})


def _unknown_group() -> UnknownGroup:
    return UnknownGroup(UNKNOWN_PATH)


def nothing_at(path: str) -> UnknownPath:
    """As upstream: whoever serves a group says so in a Status, nobody in plain text."""
    parts = path.split("/")
    is_served = parts[1] == "api" or (
        parts[1] == "apis" and parts[2:3] != [] and parts[2] in _groups()
    )
    return unknown_path() if is_served else _unknown_group()


def method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed(
        "the server does not allow this method on the requested resource", details={}
    )


def request_info(
    method: str, path: str, watch: bool, by_plural: Lookup = resources.by_plural
) -> RequestInfo:
    """Raises NotRouted, BadRequest."""
    if not path.startswith(("/api/", "/apis/")):
        return RequestInfo(_VERBS.get(method, ""), path)
    parts = _parts_of(path)
    if parts is None:
        raise NotRouted(RequestInfo(_VERBS.get(method, ""), path), unknown_path())
    group, version, rest = _split_group(parts)
    if not rest:
        return RequestInfo(_VERBS.get(method, ""), path)
    asked = _asked(method, rest, watch)
    resource = by_plural(group, version, asked.plural)
    if resource is None:
        raise NotRouted(_stand_in(path, group, version, asked), nothing_at(path))
    if resource.custom is None:
        wrong = _wrong_route(method, asked, resource)
    else:
        wrong = _wrong_custom_route(asked, resource)
    if wrong is not None:
        raise NotRouted(_stand_in(path, group, version, asked), wrong)
    namespace = asked.namespace if resource.namespaced else ""
    return RequestInfo(
        asked.verb, path, resource, namespace, asked.name, asked.subresource, asked.rest
    )


def foreign_request_info(method: str, path: str, watch: bool) -> RequestInfo:
    """Of a path below another server's group and version: who may ask is said here, what there is
    is said there. Raises NotRouted, BadRequest."""
    parts = _parts_of(path)
    if parts is None:
        raise NotRouted(RequestInfo(_VERBS.get(method, ""), path), unknown_path())
    group, version, rest = _split_group(parts)
    if not rest:
        return RequestInfo(method.lower(), path, elsewhere=True)
    return _stand_in(path, group, version, _asked(method, rest, watch))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a path names, whether or not there is such a thing."""

    verb: str
    is_watch_path: bool  # the old way to watch: /watch/ before the resource
    namespace: str
    plural: str
    name: str
    subresource: str
    rest: str


def _asked(method: str, rest: list[str], watch: bool) -> _Asked:
    """As upstream's RequestInfo."""
    verb = _VERBS.get(method, "")
    is_watch_path = rest[0] in ("proxy", "watch") and len(rest) > 1
    if is_watch_path:
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        # namespaces/NAME/status and /finalize are the namespace's own subresources.
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    name, subresource = (*rest[1:], "", "")[:2]
    if not name and not is_watch_path:
        verb = "watch" if watch and verb == "get" else _COLLECTION.get(verb, verb)
    return _Asked(verb, is_watch_path, namespace, rest[0], name, subresource, "/".join(rest[3:]))


def _stand_in(path: str, group: str, version: str, asked: _Asked) -> RequestInfo:
    resource = Resource(group, version, "", asked.plural, bool(asked.namespace))
    return RequestInfo(
        asked.verb, path, resource, asked.namespace, asked.name, asked.subresource, asked.rest,
        elsewhere=True,
    )  # fmt: skip


def _wrong_route(method: str, asked: _Asked, resource: Resource) -> ApiError | None:
    """Of a built-in kind: what is wrong with the place, or with the method there."""
    is_own = resource.plural == "namespaces" and not resource.group
    if asked.namespace and not resource.namespaced and not is_own:
        return unknown_path()
    if asked.name and resource.namespaced and not asked.namespace:
        return unknown_path()
    if asked.is_watch_path:
        if asked.verb != "watch" or asked.subresource or "watch" not in resource.verbs:
            return unknown_path()
        return None if method == "GET" else method_not_allowed()
    if asked.subresource:
        return _wrong_subresource(method, asked, resource)
    return None if method != "HEAD" and _is_offered(asked, resource) else method_not_allowed()


def _is_offered(asked: _Asked, resource: Resource) -> bool:
    """Of an object or a collection; of that of all namespaces there is less."""
    verb = asked.verb
    if verb not in resource.verbs or (verb in _NAMED) != bool(asked.name):
        return False
    return not resource.namespaced or bool(asked.namespace) or verb in ("list", "watch")


def _wrong_subresource(method: str, asked: _Asked, resource: Resource) -> ApiError | None:
    row, is_proxy = resource.subresource(asked.subresource), asked.subresource == "proxy"
    if row is None or (asked.rest and not is_proxy):
        return unknown_path()
    if is_proxy:
        return None if method in _VERBS or method == "OPTIONS" else method_not_allowed()
    return None if asked.verb in row.verbs and method != "HEAD" else method_not_allowed()


def _wrong_custom_route(asked: _Asked, resource: Resource) -> ApiError | None:
    """Of a custom kind: who serves those says it in other words."""
    if asked.is_watch_path:
        return _unknown_group()
    if bool(asked.namespace) != resource.namespaced and (asked.namespace or asked.name):
        return _unknown_group()
    verbs: tuple[str, ...] = resource.verbs
    if asked.subresource:
        row = resource.subresource(asked.subresource)
        if row is None:
            return not_found(resource.plural, resource.group, asked.name)
        if asked.rest:
            return _unknown_group()
        verbs = row.verbs
    elif resource.namespaced and not asked.namespace and asked.verb == "create":
        return _unknown_group()
    if asked.verb not in verbs:
        return method_not_supported(resource.plural, resource.group, asked.verb)
    if not asked.subresource and (asked.verb in _NAMED) != bool(asked.name):
        return method_not_allowed()
    return None


def _groups() -> set[str]:
    return {row.group for row in served_resources()}


def _split_group(parts: list[str]) -> tuple[str, str, list[str]]:
    if parts[0] == "api":
        return "", parts[1] if len(parts) > 1 else "", parts[2:]
    return (
        parts[1] if len(parts) > 1 else "",
        parts[2] if len(parts) > 2 else "",
        parts[3:],
    )


def _parts_of(path: str) -> list[str] | None:
    """None: it could mean two things. Raises BadRequest."""
    if "%" in path:
        path = _decode(path)
    parts = path[1:].split("/")
    if parts[-1] == "":
        parts.pop()  # one slash at the end is harmless, as upstream
    return None if _is_tricky(parts) else parts


def _is_tricky(parts: list[str]) -> bool:
    if ".." in parts:
        return True
    # Behind proxy/ the path belongs to somebody else; empty segments are theirs to judge.
    ours = parts[: parts.index("proxy")] if "proxy" in parts else parts
    return "" in ours or "." in ours


def _decode(path: str) -> str:
    segments = [unquote(segment) for segment in path.split("/")]
    for segment in segments:
        if "/" in segment or "\0" in segment:
            raise BadRequest(f"invalid path segment {segment!r}")
    return "/".join(segments)


def is_true(text: str) -> bool:
    """As apimachinery reads a bool of a query: whatever is not one of these, an empty one too."""
    return text.lower() not in ("false", "0")


def is_watch(query: str) -> bool:
    given = query_values(query).get("watch") if "watch" in query else None
    return given is not None and is_true(given[0])


def deadline_seconds(query: str) -> float | None:
    """Of the request itself, where it names one. Raises BadRequest."""
    text = first_value(query, "timeout")
    if not text:
        return None
    try:
        seconds = parse_duration(text) / NANO
    except DurationError as error:
        raise BadRequest(f"invalid timeout specified in the request URL - {error}") from error
    return min(seconds, MOST_SECONDS) if seconds > 0 else None
