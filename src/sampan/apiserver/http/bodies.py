"""Request bodies: bytes in, JSON data out, with what was written twice.

Job: JSON, YAML or protobuf, size limit, duplicate fields when the caller wants to know of them.
"""

import re
from typing import Any

import orjson

from sampan.api import strict_json
from sampan.api.calls import Options
from sampan.api.errors import (
    BadRequest,
    RequestEntityTooLarge,
    not_supported,
)
from sampan.api.errors import invalid as invalid_object
from sampan.api.objects import DEPTH, Obj, is_deeper_than
from sampan.api.protobuf.codec import ProtobufError, ProtobufReader
from sampan.apiserver.http.negotiate import PROTOBUF, YAML, body_media
from sampan.core.http.messages import Request

LIMIT = 3 * 1024 * 1024
# What is larger is read beside the loop: it takes more than about 20 ms.
AT_ONCE_BYTES = 256 * 1024
AT_ONCE_YAML_BYTES = 8 * 1024
_SUMMARY = 30  # bytes of a body that an error shows
_ARRAY = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of "
    'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
_SPACED = (b'" :', b'"\t:', b'"\n:', b'"\r:')


Body = tuple[Any, tuple[str, ...]]  # data, and which fields were there twice or are not known


def is_long_yaml(request: Request) -> bool:
    """Whether reading it takes long, and long enough that others need not wait behind it."""
    media = request.headers.get("content-type", "")
    return "yaml" in media and len(request.body) > AT_ONCE_YAML_BYTES and not _is_json(request.body)


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
    return _parse(request, patch_type == "apply", validation)


def _parse(request: Request, is_yaml: bool, field_validation: str, kind: str = "") -> Body:
    if request.body_too_large:
        raise _too_large()
    body = request.body
    if is_yaml and not _is_json(body):
        try:
            from sampan.api import strict_yaml  # the library is loaded with the first body of YAML

            parsed = strict_yaml.parse_yaml(body)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        _check_depth(parsed.value)
        return parsed.value, tuple(parsed.duplicates)
    try:
        value = orjson.loads(body)
    except ValueError as error:
        why = f"couldn't get version/kind; json parse error: {_as_go_says(error, body)}"
        raise _unrecognized_error(kind, why, body) from error
    if kind and type(value) is list:
        raise _unrecognized_error(kind, _ARRAY, body)
    if body.count(b"{") + body.count(b"[") > DEPTH:
        _check_depth(value)
    if field_validation == "Ignore" or not _may_repeat(body, value):
        return value, ()
    try:
        parsed = strict_json.parse(body)
    except (ValueError, RecursionError):
        return value, ()  # more than the strict reader takes; the lenient one has read it
    return value, tuple(parsed.duplicates)


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
    if not body.startswith(b"{"):
        shown = body[:_SUMMARY].hex()
    else:
        shown = body[:_SUMMARY].decode(errors="replace")
    return f"{shown} ..." if len(body) > _SUMMARY else shown


def _as_go_says(error: ValueError, body: bytes) -> str:
    text = str(error)
    if text.startswith("unexpected end") or not body.strip():
        return "unexpected end of JSON input"
    place = re.search(r"\(char (\d+)\)", text)
    at = int(place[1]) if place else 0
    rest = body.decode(errors="replace")[at:].lstrip()
    char = rest[:1] or " "
    where = (
        "after top-level value" if "after document" in text else "looking for beginning of value"
    )
    return f"invalid character '{char}' {where}"


def _is_json(body: bytes) -> bool:
    """Most YAML that clients send is JSON, which is read a hundred times faster."""
    if not body.startswith(b"{"):
        return False
    try:
        orjson.loads(body)
    except ValueError:
        return False
    return True


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
    """The query's options, overruled by a DeleteOptions body. Raises BadRequest, Invalid."""
    if not request.body and not request.body_too_large:
        return options
    body, _ = body_of(request, "Ignore", protobuf)
    if not isinstance(body, dict):
        raise BadRequest("the object provided is unrecognized (must be of type DeleteOptions)")
    if body.get("kind") not in (None, "", "DeleteOptions"):
        raise BadRequest(f"decoded object cannot be converted to DeleteOptions: {body.get('kind')}")
    if set(body) <= {"kind", "apiVersion"}:
        return options
    return _options_from(body, options)


def _options_from(body: Obj, options: Options) -> Options:
    _check_delete_options(body)
    preconditions = body.get("preconditions") or {}
    propagation = body.get("propagationPolicy") or ""
    if propagation not in ("", "Orphan", "Background", "Foreground"):
        supported = ["Foreground", "Background", "Orphan", "nil"]
        wrong = not_supported("propagationPolicy", propagation, supported)
        raise invalid_object("DeleteOptions", "meta.k8s.io", "", [wrong])
    if not propagation and body.get("orphanDependents") is not None:
        propagation = "Orphan" if body["orphanDependents"] else "Background"
    grace = body.get("gracePeriodSeconds")
    return Options(
        label_selector=options.label_selector,
        field_selector=options.field_selector,
        resource_version=options.resource_version,
        dry_run=options.dry_run or "All" in (body.get("dryRun") or ()),
        grace_seconds=grace if grace is not None else options.grace_seconds,
        precondition_uid=str(preconditions.get("uid") or ""),
        precondition_resource_version=str(preconditions.get("resourceVersion") or ""),
        propagation=propagation or options.propagation,
    )


_DELETE_OPTIONS: dict[str, tuple[type, str]] = {
    "preconditions": (dict, "v1.Preconditions"),
    "gracePeriodSeconds": (int, "int64"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "dryRun": (list, "[]string"),
}


def _check_delete_options(body: Obj) -> None:
    """Raises BadRequest, worded as Go's decoder does."""
    for key, (wanted, go_type) in _DELETE_OPTIONS.items():
        value = body.get(key)
        if value is not None and type(value) is not wanted:
            raise BadRequest(
                f"json: cannot unmarshal {_json_type(value)} into Go struct field "
                f"DeleteOptions.{key} of type {go_type}"
            )
    dry_run = body.get("dryRun") or []
    if any(item != "All" for item in dry_run):
        shown = [str(item) for item in dry_run]
        wrong = not_supported("dryRun", shown, ["All"])
        raise invalid_object("DeleteOptions", "meta.k8s.io", "", [wrong])


def _json_type(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "bool"}
    return names.get(type(value), "number")
