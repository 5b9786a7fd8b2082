"""JSONPath: what a template finds in JSON data, and how that is printed.

Job: a parsed template over data → values, or the text that client-go would print: for
    `-o jsonpath`, --sort-by, custom columns and waits of the client, and for printer columns of
    custom resources. Pure.
Invariant: a field that is not there is nothing, unless missing keys are errors; an index that is
    not there, or a comparison of unlike values, is an error always.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from sampan.api.go_text import go_json, go_value
from sampan.api.json_path.parser import (
    Action,
    Array,
    Field,
    Filter,
    Identifier,
    JsonPathError,
    Literal,
    Node,
    Recursive,
    Union,
    Wildcard,
    parse_template,
)

Values = list[Any]
_DEEPEST = 64  # ranges inside each other
_NO_VALUE = "<no value>"


def parse_json_path(template: str) -> "JsonPath":
    """Raises JsonPathError."""
    return JsonPath(parse_template(template))


class JsonPath:
    def __init__(self, actions: tuple[Action, ...]) -> None:
        self._actions = actions
        # The commonest by far: the names of fields, one inside the other.
        self._names = tuple(
            step.name for action in actions[:1] for step in action if isinstance(step, Field)
        )
        self._is_plain = len(actions) == 1 and len(self._names) == len(actions[0]) > 0

    def results(
        self, data: Any, *, allow_missing: bool = True, most: float = math.inf
    ) -> list[Values]:
        """The values that each text and each action gives. `most`: so many values at most may be
        looked at on the way. Raises JsonPathError."""
        if self._is_plain and allow_missing:
            return [_fields(self._names, data)]
        return _Evaluation(self._actions, allow_missing, most).results(0, data)


def printed(values: Sequence[Any]) -> str:
    """With spaces between them."""
    return " ".join(map(value_text, values))


def value_text(value: Any) -> str:
    """Texts as they are, maps and lists as JSON, the rest as Go prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    return go_json(value) if isinstance(value, dict | list) else go_value(value)


def cell_text(value: Any) -> str:
    """The same for a value that stands alone: upstream prints nothing's value by other words."""
    return _NO_VALUE if value is None else value_text(value)


def _fields(names: Sequence[str], data: Any) -> Values:
    for name in names:
        if type(data) is not dict or name not in data:
            return []
        data = data[name]
    return [data]


class _Evaluation:
    """Of one template over one value: where it stands among ranges."""

    def __init__(self, actions: tuple[Action, ...], allow_missing: bool, most: float) -> None:
        self._actions, self._allow_missing = actions, allow_missing
        self._left = most  # values that may be looked at
        self._begun = 0  # ranges that the action in hand has begun
        self._ended = 0  # likewise ended
        self._inside = 0  # ranges
        self._last_end = -1  # where the last range ended

    def results(self, at: int, data: Any) -> list[Values]:
        """From an action on, to the end of the range that it is in."""
        found: list[Values] = []
        while at < len(self._actions):
            values = self._action(self._actions[at], [data])
            if 0 < self._ended <= self._inside:
                self._ended -= 1
                self._last_end = at
                break
            if self._begun:
                self._begun -= 1
                found += self._range(at + 1, values)
                # As upstream: a range that nothing ends is followed by its own body, once more.
                at = max(at, self._last_end)
            else:
                found.append(values)
            at += 1
        return found

    def _range(self, at: int, values: Values) -> list[Values]:
        self._inside += 1
        if self._inside > _DEEPEST:
            raise JsonPathError(f"more than {_DEEPEST} ranges inside each other")
        found = [result for value in values for result in self.results(at, value)]
        if not values:
            self.results(at, None)  # where does it end?
        self._inside -= 1
        return found

    def _action(self, action: Action, values: Values) -> Values:
        for step in action:
            self._left -= len(values)
            if self._left < 0:
                raise JsonPathError("too many values")
            values = self._step(step, values)
        return values

    def _step(self, step: Node, values: Values) -> Values:
        match step:
            case Field(name):
                return self._field(name, values)
            case Array():
                return _items(step, values)
            case Filter():
                return [item for value in values for item in self._matches(step, value)]
            case Union(members):
                return [item for member in members for item in self._action(member, values)]
            case Wildcard():
                return [item for value in values for item in _inside(value)]
            case Recursive():
                return _descendants(values)
            case Literal(value):
                return [value] if isinstance(value, str) else [value for _ in values]
            case Identifier(name):
                return self._identifier(name, values)

    def _identifier(self, name: str, values: Values) -> Values:
        if name == "range":
            self._begun += 1
            return values
        if name != "end":
            raise JsonPathError(f"unrecognized identifier {name}")
        if not self._inside:
            raise JsonPathError("not in range, nothing to end")
        self._ended += 1
        return []

    def _field(self, name: str, values: Values) -> Values:
        found = [value[name] for value in values if isinstance(value, dict) and name in value]
        if not found and values and not self._allow_missing:
            raise JsonPathError(f"{name} is not found")
        return found

    def _matches(self, step: Filter, value: Any) -> Values:
        if not isinstance(value, list):
            why = "is not array or slice and cannot be filtered"
            raise JsonPathError(f"{go_value(value)} {why}")
        if step.operator == "exists":
            return [item for item in value if self._exists(step.left, item)]
        return [item for item in value if self._holds(step, item)]

    def _exists(self, left: Action, item: Any) -> bool:
        values = [item]
        for step in left:
            try:
                values = self._step(step, values)
            except JsonPathError:
                return _left_over(step, values)
        return bool(values)

    def _holds(self, step: Filter, item: Any) -> bool:
        sides = []
        for side in (step.left, step.right):
            values = self._action(side, [item])
            if not values:
                return False
            if len(values) > 1:
                raise JsonPathError("can only compare one element at a time")
            sides += values
        compare = _OPERATORS.get(step.operator)
        if compare is None:
            raise JsonPathError(f"unrecognized filter operator {step.operator}")
        return compare(*sides)


def _left_over(step: Node, values: Values) -> bool:
    """Upstream ignores the error of a step here, and looks at what the step leaves behind: nothing,
    of a field; all that it was given, of the others."""
    return not isinstance(step, Field) and bool(values)


def _items(step: Array, values: Values) -> Values:
    found: Values = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise JsonPathError(f"{go_type(value)} is not array or slice")
        start, end = _bounds(step, len(value))
        if start == end:
            break  # as upstream, which does not look at the next one either
        if step.step is not None and step.step <= 0:
            raise JsonPathError("step must be > 0")
        found += value[start : end : step.step or 1]
    return found


def _bounds(step: Array, size: int) -> tuple[int, int]:
    """Raises JsonPathError; two equal ones are allowed whatever they are."""
    asked = step.start or 0
    start = asked + size if asked < 0 else asked
    if step.is_index:
        end = asked + 1
        end = end + size if end <= 0 else end
    elif step.end is None:
        end = size
    else:
        end = step.end + size if step.end < 0 else step.end
    if start != end:
        for at, is_good in ((start, 0 <= start < size), (end - 1, 0 <= end <= size)):
            if not is_good:
                raise JsonPathError(f"array index out of bounds: index {at}, length {size}")
        if start > end:
            raise JsonPathError(f"starting index {start} is greater than ending index {end}")
    return start, end


def _inside(value: Any) -> Sequence[Any]:
    """Of a text its bytes, as Go has them. The order of a map is not Go's, which has none."""
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, list) else ()


def _descendants(values: Sequence[Any]) -> Values:
    """All that have something inside; at any depth, so without calling itself."""
    found: Values = []
    left = [*reversed(values)]
    while left:
        value = left.pop()
        inner = _inside(value)
        if inner:
            found.append(value)
            if not isinstance(inner, bytes):
                left += reversed(inner)
    return found


def go_type(value: Any) -> str:
    match value:
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case str():
            return "string"
        case bool():
            return "bool"
        case int():
            return "int64"
    return "float64"


def _kind(value: Any) -> type:
    if isinstance(value, dict | list) or value is None:
        raise JsonPathError("invalid type for comparison")
    return type(value)


def _is_equal(left: Any, right: Any) -> bool:
    if _kind(left) is not _kind(right):
        raise JsonPathError("incompatible types for comparison")
    return bool(left == right)


def _is_less(left: Any, right: Any) -> bool:
    if _kind(left) is not _kind(right):
        raise JsonPathError("incompatible types for comparison")
    if isinstance(left, bool):
        raise JsonPathError("invalid type for comparison")
    return bool(left < right)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _is_equal,
    "!=": lambda left, right: not _is_equal(left, right),
    "<": _is_less,
    "<=": lambda left, right: _is_less(left, right) or _is_equal(left, right),
    ">": lambda left, right: not (_is_less(left, right) or _is_equal(left, right)),
    ">=": lambda left, right: not _is_less(left, right),
}
