"""From method, path and query to what is asked. Pure.

Job: RequestInfo as upstream builds it (verb, resource, namespace, name, subresource), and the query
    as Options.
Invariant: a path that could mean two things (empty or dotted segments, encoded slashes) is refused,
    never cleaned up.
"""

from collections.abc import Callable
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from sampan.api import resources
from sampan.api.apply.managed_fields import manager_errors
from sampan.api.calls import DEFAULT_OPTIONS, Options
from sampan.api.errors import (
    BadRequest,
    FieldError,
    MethodNotAllowed,
    UnknownPath,
    invalid,
    method_not_supported,
    not_found,
    not_supported,
)
from sampan.api.resources import Resource
from sampan.core.digits import all_digits
from sampan.core.durations import NANO, DurationError, parse_duration
from sampan.core.fast_dataclass import dataclass

MOST_SECONDS = 60.0  # that a request may take, whatever it asks for
MOST_REMEMBERED = 1024  # characters of a query
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
          "DELETE": "delete"}  # fmt: skip
_OPTIONS = {
    "create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions",
    "delete": "DeleteOptions", "deletecollection": "DeleteOptions",
}  # fmt: skip
_COLLECTION = {"get": "list", "delete": "deletecollection"}
_NAMED_ONLY, _UNNAMED_ONLY = ("get", "update", "patch", "delete"), ("create",)


@dataclass(frozen=True, slots=True)
class RequestInfo:
    verb: str
    path: str
    resource: Resource | None = None  # None: a path outside the resources
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""  # what follows nodes/NAME/proxy/
    elsewhere: bool = False  # another server answers, and knows whether there is such a resource


Lookup = Callable[[str, str, str], Resource | None]  # group, version, plural


def unknown_path() -> UnknownPath:
    return UnknownPath("the server could not find the requested resource")


def request_info(
    method: str, path: str, watch: bool, by_plural: Lookup = resources.by_plural
) -> RequestInfo:
    """Raises NotFound, BadRequest or MethodNotAllowed."""
    verb = _VERBS.get(method)
    if verb is None and method == "OPTIONS" and "/proxy" in path:
        verb = ""  # of no verb, as upstream: only proxies take it
    if verb is None:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    if not path.startswith(("/api/", "/apis/")):
        return RequestInfo(verb, path)
    if "%" in path:
        path = _decode(path)
    parts = path[1:].split("/")
    if parts[-1] == "":
        parts.pop()  # one slash at the end is harmless, as upstream
    if _is_tricky(parts):
        raise unknown_path()
    group, version, rest = _split_group(parts)
    if not rest:
        return RequestInfo(verb, path)
    if rest[0] != "watch" or len(rest) < 2:
        return _resource_info(verb, path, by_group(group, version, rest, by_plural), watch)
    return _watch_info(verb, path, by_group(group, version, rest[1:], by_plural))


def _watch_info(verb: str, path: str, found: "_Found") -> RequestInfo:
    """Deprecated, and published: watch/ before what is watched."""
    if len(found.rest) > 1 or "watch" not in found.resource.verbs:
        raise unknown_path()
    if verb != "get":
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return _resource_info(verb, path, found, watch=True)


def foreign_request_info(method: str, path: str, watch: bool) -> RequestInfo:
    """Of a path below another server's group and version: who may ask is said here, what there is
    is said there. Raises NotFound, BadRequest."""
    if "%" in path:
        path = _decode(path)
    parts = path[1:].split("/")
    if parts[-1] == "":
        parts.pop()
    if _is_tricky(parts):
        raise unknown_path()
    group, version, rest = _split_group(parts)
    if not rest:
        return RequestInfo(method.lower(), path, elsewhere=True)
    verb = _VERBS.get(method, "")
    if rest[0] in ("proxy", "watch") and len(rest) > 1:  # an old way to say it
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
    name, subresource = (*rest[1:], "", "")[:2]
    verb = verb if subresource else _verb_at(verb, name, watch)
    resource = Resource(group, version, "", rest[0], bool(namespace))
    return RequestInfo(
        verb, path, resource, namespace, name, subresource, "/".join(rest[3:]), elsewhere=True
    )


@dataclass(frozen=True, slots=True)
class _Found:
    resource: Resource
    namespace: str
    rest: list[str]  # name, subresource, what follows


def by_group(group: str, version: str, rest: list[str], by_plural: Lookup) -> _Found:
    """Raises NotFound."""
    namespace = ""
    # namespaces/NAME/status and /finalize are the namespace's own subresources.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = by_plural(group, version, rest[0])
    if resource is None or (namespace and not resource.namespaced):
        raise unknown_path()
    if len(rest) > 1 and resource.namespaced and not namespace:
        raise unknown_path()
    return _Found(resource, namespace, rest[1:])


def _resource_info(verb: str, path: str, found: _Found, watch: bool) -> RequestInfo:
    resource, rest = found.resource, found.rest
    name, subresource = (*rest, "", "")[:2]
    verbs: tuple[str, ...] = resource.verbs
    wrong_place = False
    if subresource:
        row = resource.subresource(subresource)
        if row is None and resource.custom is not None:
            raise not_found(resource.plural, resource.group, name)
        if row is None or (len(rest) > 2 and subresource != "proxy"):
            raise unknown_path()
        verbs = (*row.verbs, "") if subresource == "proxy" else row.verbs
    else:
        verb = _verb_at(verb, name, watch)
        wrong_place = verb in (_UNNAMED_ONLY if name else _NAMED_ONLY)
    missing_namespace = verb == "create" and resource.namespaced and not found.namespace
    if resource.custom is not None:
        if missing_namespace:
            raise unknown_path()
        if verb not in verbs:
            raise method_not_supported(resource.plural, resource.group, verb)
    if verb not in verbs or wrong_place or missing_namespace:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return RequestInfo(verb, path, resource, found.namespace, name, subresource, "/".join(rest[2:]))


def _verb_at(verb: str, name: str, watch: bool) -> str:
    """What a method means of one object, or of a collection."""
    if not name:
        verb = _COLLECTION.get(verb, verb)
    return "watch" if watch and verb in ("get", "list") else verb


def _split_group(parts: list[str]) -> tuple[str, str, list[str]]:
    if parts[0] == "api":
        return "", parts[1] if len(parts) > 1 else "", parts[2:]
    return (
        parts[1] if len(parts) > 1 else "",
        parts[2] if len(parts) > 2 else "",
        parts[3:],
    )


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


def is_watch(query: str) -> bool:
    if "watch=" not in query:
        return False
    return any(key == "watch" and _truth(value) for key, value in parse_qsl(query, True))


def options_of(query: str, verb: str) -> Options:
    """The query's options; clients repeat the same few, so they are remembered. What a verb has no
    use for is not looked at. Raises BadRequest, Invalid."""
    if len(query) > MOST_REMEMBERED:
        return _options_of.__wrapped__(query, verb)
    return _options_of(query, verb)


def deadline_seconds(query: str) -> float | None:
    """Of the request itself, where it names one. Raises BadRequest."""
    text = dict(parse_qsl(query)).get("timeout", "")
    if not text:
        return None
    try:
        seconds = parse_duration(text) / NANO
    except DurationError as error:
        raise BadRequest(f"invalid timeout specified in the request URL - {error}") from error
    return min(seconds, MOST_SECONDS) if seconds > 0 else None


@lru_cache(maxsize=512)
def _options_of(query: str, verb: str) -> Options:
    if not query:
        return DEFAULT_OPTIONS
    given = dict(parse_qsl(query, keep_blank_values=True))
    if wrong := _wrong_options(given, verb):
        raise invalid(_OPTIONS[verb], "meta.k8s.io", "", wrong)
    dry_run = given.get("dryRun", "")
    validation = given.get("fieldValidation") or "Warn"
    grace = given.get("gracePeriodSeconds")
    return Options(
        resource_version=given.get("resourceVersion", ""),
        resource_version_match=given.get("resourceVersionMatch", ""),
        label_selector=given.get("labelSelector", ""),
        field_selector=given.get("fieldSelector", ""),
        limit=max(0, _number(given.get("limit"))),  # as upstream: negative is none
        continue_token=given.get("continue", ""),
        timeout_seconds=_number(given.get("timeoutSeconds")),
        allow_bookmarks=_truth(given.get("allowWatchBookmarks", "false")),
        send_initial_events=_truth_if_said(given.get("sendInitialEvents")),
        dry_run=dry_run == "All",
        field_manager=given.get("fieldManager", ""),
        field_validation=validation,
        force=_truth(given.get("force", "false")),
        grace_seconds=None if not grace else _number(grace),
        propagation=_propagation(given),
    )


def _wrong_options(given: dict[str, str], verb: str) -> list[FieldError]:
    if verb not in _OPTIONS:
        return []
    wrong = manager_errors(given.get("fieldManager", "")) if verb in ("create", "update") else []
    dry_run = given.get("dryRun", "")
    if dry_run not in ("", "All"):
        wrong.append(not_supported("dryRun", [dry_run], ["All"]))
    policy = given.get("propagationPolicy", "")
    if verb not in ("delete", "deletecollection"):
        validation = given.get("fieldValidation") or "Warn"
        if validation not in ("Ignore", "Warn", "Strict"):
            supported = ["", "Ignore", "Strict", "Warn"]
            wrong.append(not_supported("fieldValidation", validation, supported))
    elif policy not in ("", "Orphan", "Background", "Foreground"):
        supported = ["Foreground", "Background", "Orphan", "nil"]
        wrong.append(not_supported("propagationPolicy", policy, supported))
    return wrong


def _propagation(given: dict[str, str]) -> str:
    policy = given.get("propagationPolicy", "")
    if not policy and "orphanDependents" in given:
        return "Orphan" if _truth(given["orphanDependents"]) else "Background"
    return policy


def _truth(text: str) -> bool:
    # As apimachinery's query conversion: anything but these is true, an empty value too.
    return text.lower() not in ("false", "0")


def _truth_if_said(text: str | None) -> bool | None:
    return None if text is None else _truth(text)


def _number(text: str | None) -> int:
    if not text:
        return 0
    # What int() takes besides (spaces, underscores, other scripts' digits) is none of these.
    if not all_digits(text.removeprefix("-")):
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)
