"""Text to documents: YAML and JSON as manifests have them.

Job: the documents of one text, one after the other; what is wrong with it in kubectl's words.
Invariant: what comes before a mistake is delivered before it is told.
"""

import json
from collections.abc import Iterator
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError

_SEPARATOR = "---"
_LEAST_FOR_YAML = 4  # characters that must be left before JSON that fails is tried as YAML


def documents(content: bytes, source: str, *, newer: bool = False) -> Iterator[Any]:
    """Empty ones are none. `newer`: `on` and `y` are words, as YAML 1.2 has it."""
    for document in _of_text(_decoded(content), source, newer=newer):
        if document is not None:
            yield document


def _decoded(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def _of_text(text: str, source: str, *, newer: bool) -> Iterator[Any]:
    """Text that begins with a brace is JSON, until it is none."""
    count, at = 0, 0
    complaint = ""
    if text.lstrip().startswith("{"):
        decoder = json.JSONDecoder()
        while True:
            begin = len(text) - len(text[at:].lstrip())
            if begin == len(text):
                return
            try:
                value, end = decoder.raw_decode(text, begin)
            except ValueError as error:
                complaint = _json_complaint(text, error, is_first=count <= 1)
                break
            yield value
            count, at = count + 1, end
        rest = text[at:]
        if count > 1 or len(rest) < _LEAST_FOR_YAML:
            raise CliError(f"error parsing {source}: {complaint}")
        text = rest.removeprefix("\n") if rest[:1].isspace() else rest
    yield from _of_yaml(text, source, complaint, newer=newer)


def _of_yaml(text: str, source: str, complaint: str, *, newer: bool) -> Iterator[Any]:
    """`complaint`: why it is no JSON, which is what is told if it is no YAML either."""
    from sampan.api import strict_yaml

    for chunk in chunks(text, source):
        try:
            value = strict_yaml.first_document(chunk, newer=newer)
        except ValueError as error:
            why = complaint or f"error converting YAML to JSON: {error}"
            raise CliError(f"error parsing {source}: {why}") from error
        yield value
        complaint = ""


def chunks(text: str, source: str) -> Iterator[str]:
    """As kubectl cuts them: at lines that begin with three dashes."""
    chunk: list[str] = []
    for line in text.splitlines():
        if line.startswith(_SEPARATOR):
            rest = line[len(_SEPARATOR) :].strip()
            if rest and not rest.startswith("#"):
                raise CliError(f"error parsing {source}: invalid Yaml document separator: {rest}")
            if chunk:
                yield "\n".join(chunk) + "\n"
                chunk = []
                continue
        chunk.append(line)
    if chunk:
        yield "\n".join(chunk) + "\n"


def _json_complaint(text: str, error: ValueError, *, is_first: bool) -> str:
    from sampan.api.strict_json import syntax_complaint

    at = error.pos if isinstance(error, json.JSONDecodeError) else 0
    if at >= len(text.rstrip()):
        return "unexpected EOF"
    why = syntax_complaint(text[at:]) if _begins_value(error) else syntax_complaint(text)
    if why.startswith("unexpected end"):
        return "unexpected EOF"
    return f"json: offset {len(text[:at].encode()) + 1}: {why}" if is_first else why


def _begins_value(error: ValueError) -> bool:
    return isinstance(error, json.JSONDecodeError) and error.msg.startswith("Expecting value")


def first_document(content: bytes, source: str) -> Any:
    """None where there is none."""
    return next(documents(content, source), None)


def kind_of(obj: Obj) -> tuple[str, str]:
    return str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
