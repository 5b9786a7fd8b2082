"""The operations of a JSON patch, as they were sent.

Job: bytes → operations, and what is wrong with them, in the words of Go's decoders. Pure.
Invariant: the text is kept: a `test` compares texts, for which 1 and 1.0 are not the same.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from sampan.api import json_reading
from sampan.api.decode_scalars import json_word
from sampan.core.patterns import lazy_pattern

_TEXTS = ("op", "path", "from")
_MEMBERS = frozenset({*_TEXTS, "value"})
_SERVERS = "[]handlers.jsonPatchOp"
_TOKEN = lazy_pattern(rb'[{}\[\]]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+', re.DOTALL)


class Operations(list[Any]):
    """With the text that they were read from."""

    __slots__ = ("text",)

    def __init__(self, operations: Iterable[Any], text: bytes) -> None:
        super().__init__(operations)
        self.text = text


class Literal:
    """A scalar as it was written."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


def read_operations(body: bytes, is_checked: bool = False) -> Operations:
    """`is_checked`: not only by the patch's own library, but by the server first. Raises
    ValueError."""
    head = "error decoding patch: " if is_checked else ""
    try:
        found = json_reading.loads(body)
    except ValueError as error:
        why = str(error)
        if is_checked:
            why = why.replace("Go value of type float64", "Go struct field jsonPatchOp.value of "
                              "type float64")  # fmt: skip
        raise ValueError(head + why) from error
    wrong = complaint(found, is_checked)
    if wrong:
        raise ValueError(head + wrong)
    return Operations(found or (), body)


def complaint(found: Any, is_checked: bool) -> str:
    """Why this is no patch; empty where it is one. Null is one without operations."""
    name = _SERVERS if is_checked else "jsonpatch.Patch"
    if found is not None and not isinstance(found, list):
        return f"json: cannot unmarshal {json_word(found)} into Go value of type {name}"
    one = _SERVERS.removeprefix("[]") if is_checked else "jsonpatch.Operation"
    for operation in found or ():
        if operation is None:
            continue
        if not isinstance(operation, dict):
            return f"json: cannot unmarshal {json_word(operation)} into Go value of type {one}"
        for key, value in operation.items() if is_checked else ():
            if key in _TEXTS and value is not None and not isinstance(value, str):
                place = f"Go struct field jsonPatchOp.{key} of type string"
                return f"json: cannot unmarshal {json_word(value)} into {place}"
    return ""


def unknown_members(operations: Iterable[Any]) -> list[str]:
    return [
        f'unknown field "[{at}].{key}"'
        for at, operation in enumerate(operations)
        for key in operation or ()
        if key not in _MEMBERS
    ]


def as_written(operations: list[Any]) -> list[Any]:
    """With every scalar in a value as a Literal, where their text is known."""
    if not isinstance(operations, Operations):
        return operations
    read: list[Any] = _Literals(operations.text).value()
    return [
        operation and {key: item if key == "value" else operation[key] for key, item in one.items()}
        for operation, one in zip(operations, read, strict=True)
    ]


def resolved(value: Any) -> Any:
    """What Literals mean."""
    if isinstance(value, Literal):
        return json_reading.loads(value.text)
    if isinstance(value, dict):
        return {key: resolved(item) for key, item in value.items()}
    return [resolved(item) for item in value] if isinstance(value, list) else value


class _Literals:
    """Reads a text that is known to be JSON, and not deep."""

    def __init__(self, text: bytes) -> None:
        self._tokens = _TOKEN.finditer(text)

    def value(self) -> Any:
        return self._from(next(self._tokens)[0])

    def _from(self, token: bytes) -> Any:
        if token == b"{":
            return dict(self._members())
        if token == b"[":
            return [self._from(item) for item in self._until(b"]")]
        words = {b"true": True, b"false": False, b"null": None}
        return words[token] if token in words else Literal(token)

    def _members(self) -> Iterator[tuple[str, Any]]:
        for key in self._until(b"}"):
            yield json_reading.loads(key), self.value()

    def _until(self, end: bytes) -> Iterator[bytes]:
        for found in self._tokens:
            if found[0] == end:
                return
            yield found[0]
