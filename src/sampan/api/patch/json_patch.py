"""JSON Patch (RFC 6902), as the original applies it.

Job: apply a list of operations to a document. Pure; the inputs are never changed.
Invariant: all operations apply, or none does: a failing one raises.
Invariant: what `copy` adds, all together, is at most as large as a request may be.
"""

from typing import Any, NoReturn

import orjson

from sampan.api.errors import BadRequest, Invalid, RequestEntityTooLarge
from sampan.api.objects import DEPTH, copy_of, is_deeper_than

_MOST_OPERATIONS = 10_000
_MOST_COPIED_BYTES = 3 * 1024 * 1024  # as upstream's JSONPatchMaxCopyBytes
# Upstream hides what went wrong; the chained exception keeps it for the log.
_REFUSED = "the server rejected our request due to an error in our request"
_ABSENT = object()


class DoesNotApply(Exception):
    """Why an operation failed: the cause of the Invalid that the caller sees."""


class NotAsTested(DoesNotApply):
    """A `test` operation found something else."""


def json_patch(document: Any, patch: Any) -> Any:
    """The patched document. BadRequest: no patch at all; Invalid: it does not apply."""
    if not isinstance(patch, list) or not all(isinstance(item, dict) for item in patch):
        raise BadRequest("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(patch) > _MOST_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, "
            f"got {len(patch)}"
        )
    document = copy_of(document)
    copied = 0
    try:
        for operation in patch:
            if operation.get("op") == "copy":
                copied += _copied_bytes(document, operation)
                if copied > _MOST_COPIED_BYTES:
                    _fail(f"the accumulated size increase of copy operations is {copied}")
            document = _apply(document, operation)
        if is_deeper_than(document, DEPTH):
            _fail(f"the patched document is nested more than {DEPTH} levels deep")
    except DoesNotApply as problem:
        raise Invalid(_REFUSED) from problem
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            return _add(document, path, copy_of(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            value = copy_of(_value(operation))
            return value if not path else _add(_remove(document, path), path, value)
        case "move":
            source = _pointer(operation, "from")
            value = _find(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, copy_of(_find(document, _pointer(operation, "from"))))
        case "test":
            _test(document, path, operation.get("value"))
            return document
        case other:
            return _fail(f"Unexpected kind: {other}")


def _copied_bytes(document: Any, operation: dict[str, Any]) -> int:
    try:
        return len(orjson.dumps(_find(document, _pointer(operation, "from"))))
    except (TypeError, ValueError) as error:
        raise DoesNotApply(f"what is copied cannot be written: {error}") from error


def _test(document: Any, path: list[str], wanted: Any) -> None:
    try:
        found = _find(document, path)
    except DoesNotApply:
        found = None  # a missing value passes a test for null, as upstream
    if not _same(found, wanted):
        raise NotAsTested(f"testing value /{'/'.join(path)} failed: test failed")


def _same(one: Any, two: Any) -> bool:
    """JSON equality: true is not 1."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    return bool(one == two)


def _value(operation: dict[str, Any]) -> Any:
    value = operation.get("value", _ABSENT)
    return _fail("operation has no value") if value is _ABSENT else value


def _pointer(operation: dict[str, Any], member: str) -> list[str]:
    """RFC 6901: `/a~1b/0` → ["a/b", "0"]; the whole document is []."""
    text = operation.get(member)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        _fail(f"operation has no usable {member}: {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _find(document: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(document, dict):
            document = document.get(step, _ABSENT)
        elif isinstance(document, list):
            document = document[_index(step, len(document))]
        else:
            document = _ABSENT
        if document is _ABSENT:
            _fail(f"doc is missing path: /{'/'.join(path)}")
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder, last = _find(document, path[:-1]), path[-1]
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list):
        at = len(holder) if last == "-" else _index(last, len(holder) + 1)
        holder.insert(at, value)
    else:
        _fail(f"doc is missing path: /{'/'.join(path)}")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    holder, last = _find(document, path[:-1]), path[-1]
    if isinstance(holder, dict) and last in holder:
        del holder[last]
    elif isinstance(holder, list):
        del holder[_index(last, len(holder))]
    else:
        _fail(f"unable to remove nonexistent key: {last}")
    return document


def _index(step: str, size: int) -> int:
    """A place in a list of `size`; negative ones count from the end, as upstream allows."""
    digits = step.removeprefix("-")
    if (
        len(digits) > 9
        or not digits.isdecimal()
        or not digits.isascii()
        or (len(digits) > 1 and digits[0] == "0")
    ):
        _fail(f"no array index: {step}")
    index = int(step)
    if not -size <= index < size:
        _fail(f"Unable to access invalid index: {step}")
    return index + size if index < 0 else index


def _fail(why: str) -> NoReturn:
    raise DoesNotApply(why)
