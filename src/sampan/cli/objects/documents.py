"""Text to documents: YAML and JSON as manifests have them.

Job: all documents of one text; what is wrong with it in the words that kubectl uses.
"""

import json
from math import isfinite
from typing import Any, ClassVar

from sampan.api.objects import Obj
from sampan.cli.errors import CliError

MAX_VALUES = 1_000_000  # in one document, as often as it refers to them


def documents(content: bytes, source: str) -> list[Any]:
    """All documents of one file; empty ones are none."""
    text = content.decode(errors="replace")
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _json_documents(text)
        except ValueError as error:
            if "\n---" not in text:  # else several documents of YAML, the first of them in braces
                complaint = _json_complaint(text, error)
                raise CliError(f"error parsing {source}: {complaint}") from error
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = list(yaml.load_all(_without_tabs(text, source), _plain_loader(loader)))
        return [as_json(document) for document in found if document is not None]
    except yaml.YAMLError as error:
        raise CliError(
            f"error parsing {source}: error converting YAML to JSON: yaml: {_yaml_complaint(error)}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise _no_json(source, error) from error


def _no_json(source: str, error: Exception) -> CliError:
    why = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
    return CliError(f"error parsing {source}: error converting YAML to JSON: {why}")


def as_json(value: Any) -> Any:
    """What YAML has and JSON has not: bytes, sets, and references by which a short text stands for
    a long one. Raises ValueError."""
    return _Conversion().of(value)


class _Conversion:
    def __init__(self) -> None:
        self._count = 0

    def of(self, value: Any) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise ValueError("yaml: document contains excessive aliasing")
        if isinstance(value, dict):
            return {key: self.of(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner) for inner in value]
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if isinstance(value, set):
            return {_key(key): None for key in value}
        if isinstance(value, float) and not isfinite(value):
            raise ValueError("json: unsupported value: " + str(value).replace("inf", "Inf"))
        return value


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise ValueError(f"a key is no text: {key!r}")


def _json_documents(text: str) -> list[Any]:
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def _json_complaint(text: str, error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip()):
        return "unexpected EOF"
    return f"invalid character or value: {error}"


def _plain_loader(base: Any) -> Any:
    """Times stay text, as JSON has none, and so do keys: `1` and `true` are two, not one."""

    class Loader(base):  # type: ignore[misc]  # the base is chosen at run time
        yaml_implicit_resolvers: ClassVar[Any] = {
            key: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
            for key, pairs in base.yaml_implicit_resolvers.items()
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            self.flatten_mapping(node)
            return {
                _key(self.construct_object(key, deep=True)): self.construct_object(value, deep=deep)
                for key, value in node.value
            }

    return Loader


def _without_tabs(text: str, source: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("\t"):
            raise CliError(
                f"error parsing {source}: error converting YAML to JSON: yaml: line {number}: "
                "found character that cannot start any token"
            )
    return text


def _yaml_complaint(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is not None and mark.line > 0:
        return f"line {mark.line + 1}: {problem}"
    return str(problem)


def kind_of(obj: Obj) -> tuple[str, str]:
    return str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
