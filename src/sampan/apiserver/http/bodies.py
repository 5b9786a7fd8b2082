"""Request bodies: JSON, YAML or protobuf in, JSON data and duplicate fields out.

Job: JSON, YAML or protobuf, size limit, duplicate fields when the caller wants to know of them.
"""

from typing import Any

import orjson

from sampan.api import json_reading, strict_json
from sampan.api.calls import Options
from sampan.api.decode_scalars import json_word
from sampan.api.errors import BadRequest, RequestEntityTooLarge
from sampan.api.json_bounds import TOO_MANY, has_too_many_values
from sampan.api.objects import DEPTH, is_deeper_than
from sampan.api.patch.operations import read_operations, unknown_members
from sampan.api.patch.refusals import not_decoded, not_read
from sampan.api.protobuf.codec import ProtobufError, ProtobufReader
from sampan.api.schema.published import NotHandled
from sampan.apiserver.http.negotiate import PROTOBUF, body_media
from sampan.apiserver.http.options import check_delete_options, propagation_of
from sampan.core.fast_dataclass import replace
from sampan.core.http.messages import Request
from sampan.core.http.written_forms import YAML

LIMIT = 3 * 1024 * 1024
# What is larger is read beside the loop: it takes more than about 20 ms.
AT_ONCE_BYTES = 256 * 1024
AT_ONCE_YAML_BYTES = 8 * 1024
AT_ONCE_JSON_BYTES = 64 * 1024  # of what calls itself YAML
MOST_STRICT_FIELDS = 60_000  # of which it is told whether one is there twice
_SUMMARY = 30  # bytes of a body that an error shows
_DELETE_OPTIONS = "DeleteOptions"
_NOT_OBJECT = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {word} into Go value of "
    'type struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }}'
)
_ARRAY = _NOT_OBJECT.format(word="array")
_SPACED = (b'" :', b'"\t:', b'"\n:', b'"\r:')


Body = tuple[Any, tuple[str, ...]]  # data, and which fields were there twice or are not known


def is_long_yaml(request: Request) -> bool:
    """Whether reading it may take long, and long enough that others need not wait behind it."""
    size = len(request.body)
    if size <= AT_ONCE_YAML_BYTES or "yaml" not in request.headers.get("content-type", ""):
        return False
    return size > AT_ONCE_JSON_BYTES or not _is_json(request.body)


def body_of(
    request: Request, field_validation: str, protobuf: ProtobufReader, kind: str = ""
) -> Body:
    """`kind`: what is expected. Raises BadRequest, RequestEntityTooLarge, UnsupportedMediaType."""
    media = body_media(request.headers.get("content-type", ""))
    if media != PROTOBUF:
        return _parse(request, media == YAML, field_validation, kind)
    if request.body_too_large:
        raise _too_large()
    if not request.body:
        return {}, ()
    try:
        obj, problems = protobuf.object_in(request.body)
    except ProtobufError as error:
        raise BadRequest(f"the body cannot be decoded: {error}") from error
    _check_depth(obj)
    return obj, tuple(problems)


def patch_body_of(request: Request, patch_type: str, validation: str) -> Body:
    """Raises BadRequest, RequestEntityTooLarge."""
    is_checked = validation != "Ignore"
    if request.body_too_large:
        raise _too_large()
    _check_values(request.body)
    if patch_type == "apply":
        return _configuration(request.body)
    if patch_type == "json":
        return _operations(request.body, is_checked)
    return _fields(request.body, patch_type, is_checked)


def _configuration(body: bytes) -> Body:
    """Of an apply: YAML; or JSON, which is read a hundred times faster, where nothing is to be said
    of it in YAML's words."""
    try:
        found = json_reading.loads(body) if _is_json(body) else None
        if found is not None and not _may_repeat(body, found):
            _check_depth(found)
            return found, ()
        from sampan.api import strict_yaml  # the library is loaded with the first body of YAML

        parsed = strict_yaml.parse_yaml(body)
    except ValueError as error:
        raise BadRequest(f"{not_decoded()}: {error}") from error
    _check_depth(parsed.value)
    return parsed.value, tuple(parsed.duplicates)


def _fields(body: bytes, patch_type: str, is_checked: bool) -> Body:
    """A merge patch or a strategic one, each with its own words for what is none."""
    head = "error decoding patch: " if patch_type == "merge" else ""
    try:
        found = json_reading.loads(body)
    except ValueError as error:
        is_plain = patch_type == "merge" and not is_checked
        why = "Invalid JSON Patch" if is_plain else f"{head}{error}"
        raise not_read(body, why) from error
    if is_checked and found is not None and not isinstance(found, dict):
        kind = "Go value of type map[string]interface {}"
        raise BadRequest(f"{head}json: cannot unmarshal {json_word(found)} into {kind}")
    if body.count(b"{") + body.count(b"[") > DEPTH:
        _check_depth(found)
    return found, _repeated(body, found) if is_checked else ()


def _operations(body: bytes, is_checked: bool) -> Body:
    try:
        found = read_operations(body, is_checked)
    except ValueError as error:
        raise not_read(body, str(error)) from error
    _check_depth(found)
    if not is_checked:
        return found, ()
    problems = [*unknown_members(found), *_repeated(body, found)]
    return found, tuple(f"json patch {item}" for item in problems)


def _parse(request: Request, is_yaml: bool, field_validation: str, kind: str = "") -> Body:
    if request.body_too_large:
        raise _too_large()
    body = request.body
    _check_values(body)
    if is_yaml and not _is_json(body):
        try:
            from sampan.api import strict_yaml  # the library is loaded with the first body of YAML

            parsed = strict_yaml.parse_yaml(body)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        _check_depth(parsed.value)
        return parsed.value, tuple(parsed.duplicates)
    try:
        value = json_reading.loads(body)
    except ValueError as error:
        why = f"couldn't get version/kind; json parse error: {error}"
        raise _unrecognized_error(kind, why, body) from error
    if kind and type(value) is list:
        raise _unrecognized_error(kind, _ARRAY, body)
    if body.count(b"{") + body.count(b"[") > DEPTH:
        _check_depth(value)
    return value, () if field_validation == "Ignore" else _repeated(body, value)


def _repeated(body: bytes, value: Any) -> tuple[str, ...]:
    """The fields that are there twice."""
    if body.count(b'":') > MOST_STRICT_FIELDS or not _may_repeat(body, value):
        return ()
    try:
        return tuple(strict_json.parse(body).duplicates)
    except (ValueError, RecursionError):
        return ()  # more than the strict reader takes; the lenient one has read it


def check_kind(request: Request, kind: str, body: Any) -> None:
    """An object whose kind nobody can guess must say it. Raises BadRequest."""
    if isinstance(body, dict) and not body.get("kind"):
        text = request.body.decode(errors="replace")
        raise _unrecognized_error(kind, f"Object 'Kind' is missing in '{text}'", request.body)


def _unrecognized_error(kind: str, why: str, body: bytes) -> BadRequest:
    if not kind:
        return BadRequest(why)
    head = f"the object provided is unrecognized (must be of type {kind})"
    return BadRequest(f"{head}: {why} ({_summary(body)})")


def _summary(body: bytes) -> str:
    """The beginning, as text where it looks like an object, else as digits."""
    if not body:
        return "<empty>"
    if not body.startswith(b"{"):
        shown = body[:_SUMMARY].hex()
    else:
        shown = body[:_SUMMARY].decode(errors="replace")
    return f"{shown} ..." if len(body) > _SUMMARY else shown


def _is_json(body: bytes) -> bool:
    """Most YAML that clients send is JSON, which is read a hundred times faster."""
    if not body.startswith(b"{"):
        return False
    try:
        orjson.loads(body)
    except ValueError:
        return False
    return True


def _check_values(body: bytes) -> None:
    """Raises BadRequest."""
    if has_too_many_values(body):
        raise BadRequest(f"the body has {TOO_MANY}")


def _check_depth(value: Any) -> None:
    """Raises BadRequest."""
    if is_deeper_than(value, DEPTH):
        raise BadRequest(f"the body is nested too deeply: at most {DEPTH} levels")


def _too_large() -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {LIMIT}")


def _may_repeat(body: bytes, value: Any) -> bool:
    """Whether a field may be there twice: a cheap no where it comes out again as it went in, or
    where keys and colons can simply be counted, because reading strictly costs several times as
    much as reading."""
    if orjson.dumps(value) == body:
        return False
    if b'\\"' in body or any(item in body for item in _SPACED):
        return True
    return body.count(b'":') != _count_keys(value)


def _count_keys(value: Any) -> int:
    total = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if type(one) is dict:
            total += len(one)
            waiting.extend(one.values())
        elif type(one) is list:
            waiting.extend(one)
    return total


def delete_options(request: Request, options: Options, protobuf: ProtobufReader) -> Options:
    """The query's options or, where there is a body, all that it says: what the query says of the
    same is not looked at then. Raises BadRequest, Invalid."""
    if not request.body and not request.body_too_large:
        return options
    body, _ = body_of(request, "Ignore", protobuf)
    if isinstance(body, list):
        raise BadRequest(_ARRAY)
    if body is not None and not isinstance(body, dict):
        raise BadRequest(_NOT_OBJECT.format(word=json_word(body)))
    body = body or {}
    kind = body.get("kind") or _DELETE_OPTIONS
    api_version = body.get("apiVersion") or "meta.k8s.io/v1"
    if kind != _DELETE_OPTIONS:
        raise BadRequest(f'no kind "{kind}" is registered for version "{api_version}"')
    try:
        given = protobuf.schema.check("v1", _DELETE_OPTIONS, body).obj
    except NotHandled as error:
        raise BadRequest(error.why) from error
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    dry_run, preconditions = given.get("dryRun") or (), given.get("preconditions") or {}
    check_delete_options(policy, orphan, dry_run)
    return replace(
        options,
        dry_run=bool(dry_run),
        grace_seconds=given.get("gracePeriodSeconds"),
        precondition_uid=preconditions.get("uid") or "",
        precondition_resource_version=preconditions.get("resourceVersion") or "",
        propagation=propagation_of(policy, orphan),
    )
