"""YAML bodies, read as the original reads them.

Job: bytes → JSON data and duplicate fields, one document or several.
Invariant: of a field that is there twice the last one counts, as in lenient reading.
Why beside strict_json.py: the library takes longer to import than a start can spare; a cluster that
    nobody sends YAML never needs it.
"""

import math
from typing import Any

import yaml

from sampan.api import go_base64
from sampan.api.strict_json import Parsed
from sampan.core.digits import all_digits
from sampan.core.patterns import lazy_pattern

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_DEEPEST_DOCUMENT = 200  # levels
_LARGEST_DOCUMENT = 1_000_000  # values; a body of 3 MiB without aliases stays well below
MOST_INTEGER_CHARACTERS = 1000  # in any base; a float is full long before
_MOST_MERGED = 100_000  # fields that merge keys bring, all together
_ALIAS = lazy_pattern(r"\*([\w-]*)")
_EXCESSIVE = "yaml: document contains excessive aliasing"


def parse_yaml(body: bytes | str) -> Parsed:
    """The first YAML document as JSON data, as Go reads it; ValueError where it is none."""
    try:
        value, repeated = _document(body)
    except ValueError as error:
        raise ValueError(f"error converting YAML to JSON: {error}") from error
    if not repeated:
        return Parsed(value, [])
    lines = "".join(f"\n  {line}" for line in repeated)
    return Parsed(value, [f"yaml: unmarshal errors:{lines}"])


def first_document(body: bytes | str, *, newer: bool = False) -> Any:
    """As JSON data; whatever follows it is not looked at. `newer`: only true and false are truths,
    as YAML 1.2 has it. Raises ValueError."""
    return _document(body, _NewerLoader if newer else _Loader)[0]


def _document(body: bytes | str, reader: "type[_Loader] | None" = None) -> tuple[Any, list[str]]:
    """And what was repeated in it."""
    _check_depth(body.encode() if isinstance(body, str) else body)
    try:
        loader = (reader or _Loader)(body)
    except yaml.YAMLError as error:  # no text at all
        raise ValueError(_one_line(error, body)) from error
    try:
        value = loader.get_first_data()
    except yaml.YAMLError as error:
        raise ValueError(_one_line(error, body)) from error
    except RecursionError as error:  # aliases of aliases of aliases
        raise ValueError(_EXCESSIVE) from error
    finally:
        loader.dispose()
    if _size(value, {}) > _LARGEST_DOCUMENT:
        raise ValueError(_EXCESSIVE)
    return value, loader.repeated


def _check_depth(body: bytes) -> None:
    """libyaml builds nodes by recursion in C, and a deep document ends the process: so where one
    may be deep, its events, which come without recursion, are counted first."""
    longest = max((len(line) for line in body.splitlines()), default=0)
    # Each block collection starts further right than the one around it, or is the list in a map.
    if 2 * longest + body.count(b"[") + body.count(b"{") <= _DEEPEST_DOCUMENT:
        return
    depth = 0
    try:
        for event in yaml.parse(body, Loader=_Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _DEEPEST_DOCUMENT:
                    raise ValueError("yaml: exceeded max depth")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError as error:
        raise ValueError(_one_line(error, body)) from error


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values there are once aliases are written out; shared ones are counted from `known`,
    so that a document built to explode is seen before it does."""
    if not isinstance(value, dict | list):
        return 1
    size = known.get(id(value))
    if size is None:
        items = value.values() if isinstance(value, dict) else value
        size = known[id(value)] = 1 + sum(_size(item, known) for item in items)
    return size


def _one_line(error: yaml.YAMLError, body: bytes | str) -> str:
    """As go-yaml: of the marks the problem's where it is not in the first line; what the scanner
    finds is one line further down than it says."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"yaml: {error.reason}"
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"yaml: {error}"
    if error.problem == "found unconstructable recursive node":
        return "yaml: anchor value contains itself"
    if error.problem == "found undefined alias" and error.problem_mark is not None:
        text = body if isinstance(body, str) else body.decode(errors="replace")
        alias = _ALIAS.match(text, error.problem_mark.index)
        return f"yaml: unknown anchor '{alias.group(1) if alias else ''}' referenced"
    line = error.problem_mark.line if error.problem_mark is not None else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    elif not line and error.context_mark is not None:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    problem = error.problem or error.context or "unknown problem parsing YAML content"
    return f"yaml: {where}{problem}"


class _Loader(yaml.CSafeLoader):
    """YAML 1.1 as Go's library resolves it: no dates, no base-60 numbers; keys are strings."""

    def __init__(self, stream: bytes | str) -> None:
        super().__init__(stream)
        self.repeated: list[str] = []  # 'line 3: key "name" already set in map'
        self._merged = 0
        self._brought: dict[yaml.MappingNode, int] = {}  # how many of its pairs merging brought

    def get_first_data(self) -> Any:
        """None where there is no document at all."""
        return self.get_data() if self.check_data() else None  # type: ignore[no-untyped-call]  # the library has no types

    def string_mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        self.flatten_mapping(node)
        own = self._brought.get(node, 0)
        out: dict[str, Any] = {}
        written: set[str] = set()
        for index, (key_node, value_node) in enumerate(node.value):
            key = _key_text(self.construct_object(key_node, deep=True))
            if index >= own:
                if key in written:
                    line = key_node.start_mark.line + 1
                    self.repeated.append(f'line {line}: key "{key}" already set in map')
                written.add(key)
            out[key] = self.construct_object(value_node, deep=True)
        return out

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge keys (<<) give way to what they bring. It is counted: each may bring what others
        have brought, so that a few hundred bytes would fill any memory."""
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        if len(own) == len(node.value):
            return
        sources = [value for key, value in node.value if key.tag == _MERGE]
        node.value = own  # at once: who merges itself finds nothing more to merge
        merged: dict[yaml.Node, yaml.Node] = {}
        for source in sources:
            many = isinstance(source, yaml.SequenceNode)
            # Earlier ones have the last word.
            for part in reversed(source.value) if many else (source,):
                if not isinstance(part, yaml.MappingNode):
                    raise yaml.YAMLError("map merge requires map or sequence of maps as the value")
                self.flatten_mapping(part)
                self._merged += len(part.value)
                if self._merged > _MOST_MERGED:
                    raise yaml.YAMLError(_EXCESSIVE.removeprefix("yaml: "))
                for key, value in part.value:
                    merged.pop(key, None)
                    merged[key] = value
        self._brought[node] = len(merged)
        node.value = [*merged.items(), *own]


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        raise ValueError("unsupported map key of type: %!s(<nil>), key: <nil>")
    if isinstance(key, list | dict):
        raise yaml.YAMLError("invalid map key: a list or a map")
    return str(key)


_NOT_RESOLVED = frozenset({f"{_TAG}int", f"{_TAG}float", f"{_TAG}timestamp"})
_INTEGER = lazy_pattern(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_NUMBER = lazy_pattern(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"
    r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)
_YES_NO = lazy_pattern(r"[yYnN]$")
_TRUE_FALSE = lazy_pattern(r"(?:true|True|TRUE|false|False|FALSE)$")


def _whole_where_it_is(loader: _Loader, node: yaml.ScalarNode) -> int | float | str:
    """1e3 and 2.0 are whole numbers once they have been JSON."""
    text = str(loader.construct_scalar(node))
    if text.lower().endswith("nan"):
        raise ValueError("json: unsupported value: NaN")
    if text.lower().endswith("inf"):
        raise ValueError(f"json: unsupported value: {'-' if text[0] == '-' else '+'}Inf")
    number = float(text)
    if not math.isfinite(number):
        return text  # which Go's reader finds too large for a number
    return int(number) if number.is_integer() and abs(number) < 2**63 else number


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int | float | str:
    """As go-yaml has it: what is longer than 64 bits is a float, what no float holds is text."""
    text = str(node.value)
    if len(text) > MOST_INTEGER_CHARACTERS:
        return text
    number: int = loader.construct_yaml_int(node)
    if -(2**63) <= number < 2**64:
        return number
    if not all_digits(text.lstrip("+-").replace("_", "")):
        return text
    try:
        return float(number)
    except OverflowError:
        return text


def _truth(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


def _binary(loader: _Loader, node: yaml.ScalarNode) -> str:
    try:
        return go_base64.decoded(str(node.value).replace(" ", "")).decode(errors="replace")
    except ValueError as error:
        raise yaml.YAMLError("!!binary value contains invalid base64 data") from error


def _untagged(loader: _Loader, node: yaml.Node) -> Any:
    """A tag that nobody knows changes nothing."""
    if isinstance(node, yaml.MappingNode):
        return loader.string_mapping(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] not in _NOT_RESOLVED]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}int", _INTEGER, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _NUMBER, list("-+.0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}bool", _YES_NO, list("yYnN"))
_Loader.add_constructor(f"{_TAG}map", _Loader.string_mapping)
_Loader.add_constructor(f"{_TAG}float", _whole_where_it_is)
_Loader.add_constructor(f"{_TAG}int", _integer)
_Loader.add_constructor(f"{_TAG}bool", _truth)
_Loader.add_constructor(f"{_TAG}binary", _binary)
_Loader.add_constructor(f"{_TAG}set", _Loader.string_mapping)
_Loader.add_constructor(None, _untagged)


class _NewerLoader(_Loader):
    """As kustomize reads objects."""


_NewerLoader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != f"{_TAG}bool"]
    for first, pairs in _Loader.yaml_implicit_resolvers.items()
}
_NewerLoader.add_implicit_resolver(f"{_TAG}bool", _TRUE_FALSE, list("tTfF"))
