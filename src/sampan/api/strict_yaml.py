"""YAML, read as the original reads it.

Job: bytes → JSON data and duplicate fields, one document or several.
Invariant: of a field that is there twice the last one counts, as in lenient reading.
Why beside strict_json.py: the library takes longer to import than a start can spare; a cluster that
    nobody sends YAML never needs it.
"""

import math
import re
from typing import Any

import yaml

from sampan.api.strict_json import Parsed

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_DEEPEST_DOCUMENT = 200  # levels
_LARGEST_DOCUMENT = 1_000_000  # values; a body of 3 MiB without aliases stays well below
MOST_INTEGER_CHARACTERS = 1000  # in any base; a float is full long before
_MOST_MERGED = 100_000  # fields that merge keys bring, all together
_EXCESSIVE = "yaml: document contains excessive aliasing"


def parse_yaml(body: bytes | str) -> Parsed:
    """One YAML document as JSON data; ValueError where it is none."""
    _check_depth(body.encode() if isinstance(body, str) else body)
    loader = _Loader(body)
    try:
        value = loader.get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(f"error converting YAML to JSON: {_one_line(error)}") from error
    except RecursionError as error:  # aliases of aliases of aliases
        raise ValueError(f"error converting YAML to JSON: {_EXCESSIVE}") from error
    finally:
        loader.dispose()
    if _size(value, {}) > _LARGEST_DOCUMENT:
        raise ValueError(f"error converting YAML to JSON: {_EXCESSIVE}")
    if not loader.repeated:
        return Parsed(value, [])
    lines = "".join(f"\n  {line}" for line in loader.repeated)
    return Parsed(value, [f"yaml: unmarshal errors:{lines}"])


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
                    raise ValueError("error converting YAML to JSON: yaml: exceeded max depth")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError as error:
        raise ValueError(f"error converting YAML to JSON: {_one_line(error)}") from error


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


def _one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"yaml: line {error.problem_mark.line + 1}: {error.problem or error.context}"
    return f"yaml: {error}"


class _Loader(yaml.CSafeLoader):
    """YAML 1.1 as Go's library resolves it: no dates, no base-60 numbers; keys are strings."""

    def __init__(self, stream: bytes | str) -> None:
        super().__init__(stream)
        self.repeated: list[str] = []  # 'line 3: key "name" already set in map'
        self._merged = 0
        self._brought: dict[yaml.MappingNode, int] = {}  # how many of its pairs merging brought

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
        return "null"
    if isinstance(key, list | dict):
        raise yaml.YAMLError("a list or map cannot be a key")
    return str(key)


_NOT_RESOLVED = frozenset({f"{_TAG}int", f"{_TAG}float", f"{_TAG}timestamp"})
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_YES_NO = re.compile(r"[yYnN]$")


def _whole_where_it_is(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    """1e3 and 2.0 are whole numbers once they have been JSON."""
    number = float(loader.construct_scalar(node))
    if not math.isfinite(number):
        raise yaml.YAMLError("json: unsupported value: +Inf")
    return int(number) if number.is_integer() and abs(number) < 2**63 else number


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    """As the JSON reader has it: what is longer than 64 bits is a float."""
    if len(node.value) > MOST_INTEGER_CHARACTERS:
        raise yaml.YAMLError("json: unsupported value: +Inf")
    number: int = loader.construct_yaml_int(node)
    if -(2**63) <= number < 2**64:
        return number
    try:
        return float(number)
    except OverflowError as error:
        raise yaml.YAMLError("json: unsupported value: +Inf") from error


def _truth(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


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
