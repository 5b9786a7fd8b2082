"""JSON patch, as the library of the original applies it (evanphx/json-patch v4).

Job: apply a list of operations to a document. Pure; the inputs are never changed.
Invariant: all operations apply, or none does: a failing one raises.
Invariant: what `copy` adds, all together, is at most as large as a request may be.

Where the library differs from RFC 6902: `replace` sets what is not there, and `copy` of it is null;
an operation without a value means null; indices are read as Go reads numbers (01, +1, and -1 from
the end); a path's first step may be anything up to its first slash; `test` compares texts, and what
is not there is null.
"""

from typing import Any, NoReturn

import orjson

from sampan.api.errors import BadRequest, Invalid, RequestEntityTooLarge
from sampan.api.go_text import go_json
from sampan.api.objects import DEPTH, copy_of, is_deeper_than
from sampan.api.patch.operations import Literal, as_written, complaint, resolved
from sampan.core.patterns import lazy_pattern

_MOST_OPERATIONS = 10_000
_MOST_COPIED_BYTES = 3 * 1024 * 1024  # as upstream's JSONPatchMaxCopyBytes
_MOST_MOVED = 100_000_000  # values of lists; some tenths of a second
# Upstream hides what went wrong; the chained exception keeps it for the log.
REFUSED = "the server rejected our request due to an error in our request"
_NUMBER = lazy_pattern(r"[+-]?[0-9]{1,20}")
_MISSING = "missing value"
_NULL = object()  # a null that an operation brought: there, where null in a document is not


class DoesNotApply(Exception):
    """Why an operation failed, in the library's words: the cause of the Invalid that the caller
    sees."""


class NotAsTested(DoesNotApply):
    """A `test` operation found something else."""


def json_patch(document: Any, patch: Any) -> Any:
    """The patched document. BadRequest: no patch at all; Invalid: it does not apply."""
    wrong = complaint(patch, is_checked=False)
    if wrong:
        raise BadRequest(wrong)
    operations: list[Any] = patch or []
    if len(operations) > _MOST_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, "
            f"got {len(operations)}"
        )
    try:
        return _Patching(copy_of(document)).patched(operations)
    except DoesNotApply as problem:
        raise Invalid(REFUSED, details={}) from problem


class _Patching:
    """One document; ours to change."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._copied = self._moved = 0

    def patched(self, operations: list[Any]) -> Any:
        has_tests = any((one or {}).get("op") == "test" for one in operations)
        for operation in as_written(operations) if has_tests else operations:
            self._apply(operation or {})
        _check_depth(self._document)
        document = _with_nulls(self._document)
        return resolved(document) if has_tests else document

    def _apply(self, operation: dict[str, Any]) -> None:
        match operation.get("op"):
            case "add":
                self._add(_path(operation, "add"), _value(operation))
            case "remove":
                self._remove(_path(operation, "remove"))
            case "replace":
                self._replace(_path(operation, "replace"), _value(operation))
            case "move":
                self._move(operation)
            case "copy":
                self._copy(operation)
            case "test":
                self._test(_path(operation, "test"), operation)
            case other:
                _fail(f"Unexpected kind: {other if isinstance(other, str) else 'unknown'}")

    def _add(self, path: str, value: Any) -> None:
        where = f'add operation does not apply: doc is missing path: "{path}"'
        holder, key = self._holder(path, where)
        try:
            _insert(holder, key, value)
        except DoesNotApply as problem:
            raise DoesNotApply(f"error in add for path: '{path}': {problem}") from problem

    def _remove(self, path: str) -> None:
        where = f'remove operation does not apply: doc is missing path: "{path}"'
        holder, key = self._holder(path, where)
        try:
            _delete(holder, key)
        except DoesNotApply as problem:
            raise DoesNotApply(f"error in remove for path: '{path}': {problem}") from problem

    def _replace(self, path: str, value: Any) -> None:
        if not path:
            if not isinstance(value, dict | list):
                _fail("replace operation value must be object or array: %!w(<nil>)")
            self._document = value
            return
        where = "replace operation does not apply: doc is missing"
        holder, key = self._holder(path, f"{where} path: {path}")
        try:
            _get(holder, key)
        except DoesNotApply as problem:
            raise DoesNotApply(f"{where} key: {path}: {_MISSING}") from problem
        if isinstance(holder, dict):
            holder[key] = value
        else:
            holder[_number(key) % len(holder)] = value

    def _move(self, operation: dict[str, Any]) -> None:
        source = _path(operation, "move", "from")
        holder, key = self._holder(
            source, f"move operation does not apply: doc is missing from path: {source}"
        )
        try:
            value = _get(holder, key)
            _delete(holder, key)
        except DoesNotApply as problem:
            raise DoesNotApply(f"error in move for path: '{key}': {problem}") from problem
        path = _path(operation, "move")
        where = f"move operation does not apply: doc is missing destination path: {path}"
        holder, key = self._holder(path, where)
        try:
            _insert(holder, key, value)
        except DoesNotApply as problem:
            raise DoesNotApply(f"error in move for path: '{path}': {problem}") from problem

    def _copy(self, operation: dict[str, Any]) -> None:
        source = _path(operation, "copy", "from")
        holder, key = self._holder(
            source, f"copy operation does not apply: doc is missing from path: {source}"
        )
        try:
            value = _get(holder, key)
        except DoesNotApply as problem:
            raise DoesNotApply(f"error in copy for from: '{source}': {problem}") from problem
        path = _path(operation, "copy")
        where = f"copy operation does not apply: doc is missing destination path: {path}"
        holder, key = self._holder(path, where)
        _check_depth(value)
        self._copied += _size(value)
        if self._copied > _MOST_COPIED_BYTES:
            _fail(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}, exceeding the limit {_MOST_COPIED_BYTES}"
            )
        try:
            _insert(holder, key, None if value is _NULL else _copied(value))
        except DoesNotApply as problem:
            raise DoesNotApply(f"error while adding value during copy: {problem}") from problem

    def _test(self, path: str, operation: dict[str, Any]) -> None:
        failed = NotAsTested(f"testing value {path} failed: test failed")
        if not path:
            if not _same(self._document, operation.get("value")):
                raise failed
            return
        where = f"test operation does not apply: is missing path: {path}"
        holder, key = self._holder(path, where)
        try:
            found = _get(holder, key)
        except DoesNotApply as problem:
            raise DoesNotApply(f"error in test for path: '{path}': {problem}") from problem
        wanted = operation.get("value")
        if found is None:
            if wanted is not None:
                raise failed
        elif "value" not in operation or not _same(found, wanted):
            raise failed

    def _holder(self, path: str, problem: str) -> tuple[Any, str]:
        """What holds the last step of the path, and that step. Raises DoesNotApply."""
        steps = path.split("/")
        if len(steps) < 2:
            _fail(f"{problem}: {_MISSING}")
        here = self._document
        for step in steps[1:-1]:
            try:
                here = _get(here, _key(step))
            except DoesNotApply:
                here = None
            if not isinstance(here, dict | list):
                _fail(f"{problem}: {_MISSING}")
        if isinstance(here, list):
            self._moved += len(here)
            if self._moved > _MOST_MOVED:
                _fail(f"the operations move {self._moved} values of lists")
        return here, _key(steps[-1])


def _get(holder: Any, key: str) -> Any:
    """None where a map has no such key."""
    if isinstance(holder, dict):
        return holder.get(key)
    index = _number(key)
    if not -len(holder) <= index < len(holder):
        _no_index(index)
    return holder[index]


def _insert(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
        return
    if key == "-":
        holder.append(value)
        return
    try:
        index = _number(key)
    except DoesNotApply as problem:
        raise DoesNotApply(f"value was not a proper array index: '{key}': {problem}") from problem
    size = len(holder) + 1
    if not -size <= index < size:
        _no_index(index)
    holder.insert(index % size, value)


def _delete(holder: Any, key: str) -> None:
    if isinstance(holder, list):
        index = _number(key)
        if not -len(holder) <= index < len(holder):
            _no_index(index)
        del holder[index]
    elif key in holder:
        del holder[key]
    else:
        _fail(f"Unable to remove nonexistent key: {key}: {_MISSING}")


def _no_index(index: int) -> NoReturn:
    _fail(f"Unable to access invalid index: {index}: invalid index referenced")


def _number(text: str) -> int:
    """As Go's Atoi."""
    if not _NUMBER.fullmatch(text):
        _fail(f'strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if not -(2**63) <= number < 2**63:
        _fail(f'strconv.Atoi: parsing "{text}": value out of range')
    return number


def _value(operation: dict[str, Any]) -> Any:
    value = operation.get("value")
    return _NULL if value is None and "value" in operation else _copied(value)


def _path(operation: dict[str, Any], kind: str, member: str = "path") -> str:
    found = operation.get(member)
    if not isinstance(found, str):
        _fail(f"{kind} operation failed to decode {member}: {_MISSING}")
    return found


def _key(step: str) -> str:
    """RFC 6901."""
    return step.replace("~1", "/").replace("~0", "~")


def _same(found: Any, wanted: Any) -> bool:
    """Scalars by their texts; nothing in a list is the same as nothing."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_same(found[k], wanted[k]) for k in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    if isinstance(found, dict | list) or isinstance(wanted, dict | list):
        return False
    return _text(found) == _text(wanted)


def _text(value: Any) -> str:
    if isinstance(value, Literal):
        return value.text.decode(errors="surrogateescape")
    return go_json(None if value is _NULL else value)


def _size(value: Any) -> int:
    try:
        return len(orjson.dumps(value, default=_plain))
    except (TypeError, ValueError) as error:
        raise DoesNotApply(f"error while performing deep copy: {error}") from error


def _plain(value: Any) -> Any:
    return None if value is _NULL else orjson.Fragment(value.text)


def _check_depth(value: Any) -> None:
    if is_deeper_than(value, DEPTH):
        _fail(f"the patched document is nested more than {DEPTH} levels deep")


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value


def _with_nulls(value: Any) -> Any:
    if type(value) is dict:
        for key, item in value.items():
            value[key] = _with_nulls(item)
    elif type(value) is list:
        value[:] = [_with_nulls(item) for item in value]
    return None if value is _NULL else value


def _fail(why: str) -> NoReturn:
    raise DoesNotApply(why)
