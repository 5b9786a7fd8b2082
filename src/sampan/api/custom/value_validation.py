"""Value validation of custom objects, in the words of upstream's validator.

Job: compile a schema into closures that find every problem of a value. Pure.
Invariant: with an older value at hand, a part that did not change is not complained about.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import orjson

from sampan.api.cel.libraries.regex import NotRegex
from sampan.api.cel.libraries.regex import compile_pattern as regex
from sampan.api.custom import formats
from sampan.api.custom.structural import MISSING
from sampan.api.decode_scalars import Path, path_text
from sampan.api.errors import (
    FieldError,
    invalid_value,
    not_supported,
    required_value,
    too_long,
    too_many,
    type_invalid,
)
from sampan.api.objects import Obj

_LARGEST_EXACT = 2**53 - 1
_EPSILON = 1e-9
_FORBIDDEN = "is a forbidden property"


class Problem(NamedTuple):
    kind: str  # type, required, enum, too_long, too_many, invalid, composite
    path: Path
    value: Any
    detail: Any


# (value, where it is, what it was before, what is wrong)
Check = Callable[[Any, Path, Any, list[Problem]], None]


def compile_checks(schema: Obj) -> Check:
    return _Compiled(schema).check


def check_value(check: Check, value: Any, old: Any = MISSING) -> list[Problem]:
    problems: list[Problem] = []
    check(value, (), old, problems)
    if problems and old is not MISSING and old == value:
        return []
    return problems


def field_errors(problems: Sequence[Problem], prefix: str = "") -> list[FieldError]:
    return [_field_error(problem, prefix) for problem in problems]


def _field_error(problem: Problem, prefix: str) -> FieldError:
    kind, path, value, detail = problem
    name = dotted_path(path)
    field = f"{prefix}.{name}" if prefix and name else prefix or name
    match kind:
        case "required":
            return required_value(field)
        case "enum":
            return not_supported(field, value, detail)
        case "too_long":
            return too_long(field, detail)
        case "too_many":
            return too_many(field, value, detail)
        case "type":
            return type_invalid(field, value, f'{name} in body must be of type {detail}: "{value}"')
        case "composite":
            return invalid_value(prefix or "<nil>", "", f'"{name}" {detail}')
    return invalid_value(field, value, f"{name} in body {detail}")


def dotted_path(path: Path) -> str:
    """`spec.map.key`, `spec.list[0]`: keys of maps are written like fields."""
    return path_text(path) if path else ""


def json_type(value: Any) -> str:
    if value is None:
        return "null"
    if type(value) is bool:
        return "boolean"
    if type(value) is int:
        return "integer" if -(2**63) <= value < 2**63 else "number"
    if type(value) is float:
        return "number"
    if type(value) is str:
        return "string"
    return "array" if type(value) is list else "object"


class _Compiled:
    """One schema: what is asked of a value of each JSON type."""

    def __init__(self, schema: Obj) -> None:
        self._wanted = _types_of(schema)
        self._named = ",".join(self._wanted)
        self._nullable = bool(schema.get("nullable"))
        self._format = schema.get("format") or ""
        self._sure = _sure_types(self._wanted)
        number = _number_tests(schema)
        self._of_kind: dict[type, Check | None] = {
            str: _text_test(schema), int: number, float: number, bool: None,
            list: _list_test(schema), dict: _object_test(schema),
        }  # fmt: skip
        self._always = [*_enum_tests(schema), *_combined_tests(schema)]
        # By a value's Python type, where that says which test is enough; None: it is good.
        self.direct: dict[type, Check | None] = (
            {} if self._always else {kind: self._of_kind[kind] for kind in self._sure}
        )

    def check(self, value: Any, path: Path, old: Any, problems: list[Problem]) -> None:
        kind = type(value)
        if kind not in self._sure and self._wanted:
            self._check_type(value, path, problems)
        if value is None:
            return
        test = self._of_kind[kind]
        if test is not None:
            test(value, path, old, problems)
        for test in self._always:
            test(value, path, old, problems)

    def _check_type(self, value: Any, path: Path, problems: list[Problem]) -> None:
        if value is None and self._nullable:
            return
        got = json_type(value)
        if got in self._wanted or (got == "integer" and "number" in self._wanted):
            return
        if got == "number" and "integer" in self._wanted and is_whole(value):
            return
        numeric = "number" in self._wanted or "integer" in self._wanted
        if self._format and not numeric and type(value) in (str, list):
            return  # as upstream: left to the format
        problems.append(Problem("type", path, got, self._named))


def _types_of(schema: Obj) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _sure_types(wanted: tuple[str, ...]) -> frozenset[type]:
    known: dict[str, tuple[type, ...]] = {
        "string": (str,), "boolean": (bool,), "array": (list,), "object": (dict,),
        "number": (float,),
    }  # fmt: skip
    if not wanted:
        return frozenset({str, int, float, bool, list, dict, type(None)} - {type(None)})
    return frozenset(item for name in wanted for item in known.get(name, ()))


def is_whole(value: float) -> bool:
    """Whether a number counts as an integer, as JSON (and Go's floats) can tell."""
    if type(value) is int:
        return -_LARGEST_EXACT <= value <= _LARGEST_EXACT
    if value != value or not -_LARGEST_EXACT <= value <= _LARGEST_EXACT:
        return False
    return _is_near(value, float(int(value)))


def _is_near(value: float, other: float) -> bool:
    if value == other:
        return True
    if value == 0 or other == 0:
        return False
    return abs(value - other) / (abs(value) + abs(other)) < _EPSILON


def _text_test(schema: Obj) -> Check | None:
    """The first of its limits that a text breaks, and its format besides."""
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern = schema.get("pattern") or ""
    has_format = formats.test_of(schema.get("format") or "")
    name = schema.get("format") or ""
    if longest is None and shortest is None and not pattern and has_format is None:
        return None
    search = search_of(pattern)[0] if pattern else None

    def check_text(value: str, path: Path, _old: Any, problems: list[Problem]) -> None:
        if longest is not None and len(value) > longest:
            problems.append(Problem("too_long", path, None, longest))
        elif shortest is not None and len(value) < shortest:
            why = f"should be at least {shortest} chars long"
            problems.append(Problem("invalid", path, value, why))
        elif search is not None and not search(value):
            problems.append(Problem("invalid", path, value, f"should match '{pattern}'"))
        if has_format is not None and not has_format(value):
            problems.append(Problem("type", path, value, name))

    return check_text


def search_of(pattern: str) -> tuple[Callable[[str], bool], Container[str]]:
    """Does a text have the pattern? And short texts of which it is known that they do."""
    try:
        found = regex(pattern)
    except NotRegex:  # refused when the definition was written; an old one may still have it
        return (lambda _text: False), frozenset()
    return found.matches, found.known


def _number_tests(schema: Obj) -> Check | None:
    tests = [
        *_multiple_tests(schema.get("multipleOf")),
        *_bound_tests(schema, "maximum", "exclusiveMaximum", "less than"),
        *_bound_tests(schema, "minimum", "exclusiveMinimum", "greater than"),
    ]
    if not tests:
        return None

    def check_number(value: float, path: Path, _old: Any, problems: list[Problem]) -> None:
        for is_good, why in tests:
            if not is_good(value):
                problems.append(Problem("invalid", path, value, why))

    return check_number


NumberTest = tuple[Callable[[float], bool], str]


def _bound_tests(schema: Obj, key: str, exclusive: str, words: str) -> list[NumberTest]:
    bound = schema.get(key)
    if bound is None:
        return []
    is_less = key == "maximum"
    shown = _shown_number(bound)
    if schema.get(exclusive):
        tested: Callable[[float], bool] = (
            (lambda value: value < bound) if is_less else (lambda value: value > bound)
        )
        return [(tested, f"should be {words} {shown}")]
    tested = (lambda value: value <= bound) if is_less else (lambda value: value >= bound)
    return [(tested, f"should be {words} or equal to {shown}")]


def _multiple_tests(factor: float | None) -> list[NumberTest]:
    if not factor:
        return []

    def is_multiple(value: float) -> bool:
        if type(value) is int and type(factor) is int:
            return value % factor == 0
        return is_whole(1 / factor * value if factor < 1 else value / factor)

    return [(is_multiple, f"should be a multiple of {_shown_number(factor)}")]


def _shown_number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _list_test(schema: Obj) -> Check | None:
    least, most = schema.get("minItems"), schema.get("maxItems")
    items = schema.get("items")
    each = _Compiled(items) if isinstance(items, dict) else None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    correlated = keys if schema.get("x-kubernetes-list-type") == "map" else ()
    if each is None and least is None and most is None:
        return None

    def check_list(value: list[Any], path: Path, old: Any, problems: list[Problem]) -> None:
        if each is not None:
            before = _by_keys(old, correlated) if correlated and type(old) is list else {}
            direct, check = each.direct, each.check
            for at, item in enumerate(value):
                test = direct.get(type(item), check)
                if test is not None:
                    was = before.get(_keys_of(item, correlated), MISSING) if before else MISSING
                    _check_part(test, item, (path, at), was, problems)
        if least is not None and len(value) < least:
            why = f"should have at least {least} items"
            problems.append(Problem("invalid", path, len(value), why))
        if most is not None and len(value) > most:
            problems.append(Problem("too_many", path, len(value), most))

    return check_list


def _check_part(check: Check, value: Any, path: Path, old: Any, problems: list[Problem]) -> None:
    before = len(problems)
    check(value, path, old, problems)
    if len(problems) > before and old is not MISSING and old == value:
        del problems[before:]


def _by_keys(items: list[Any], keys: tuple[str, ...]) -> dict[Any, Any]:
    """The items of a list map by what tells them apart; nothing where some cannot be told."""
    found = {_keys_of(item, keys): item for item in items}
    return found if len(found) == len(items) else {}


def _keys_of(item: Any, keys: tuple[str, ...]) -> Any:
    if type(item) is not dict:
        return None
    return orjson.dumps([item.get(key) for key in keys])


def _object_test(schema: Obj) -> Check | None:
    fields = {key: _Compiled(prop) for key, prop in (schema.get("properties") or {}).items()}
    needed = tuple(schema.get("required") or ())
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    additional = schema.get("additionalProperties")
    others = _Compiled(additional) if isinstance(additional, dict) else None
    correlates = schema.get("x-kubernetes-map-type") != "atomic"
    closed = additional is False
    sized = least is not None or most is not None
    if not (fields or needed or others or closed) and least is None and most is None:
        return None

    known = {key: (field.direct, field.check) for key, field in fields.items()}
    other = None if others is None else (others.direct, others.check)

    def check_object(value: Obj, path: Path, old: Any, problems: list[Problem]) -> None:
        before = old if correlates and type(old) is dict else None
        for key, item in value.items():
            found = known.get(key, other)
            if found is None:
                if closed:
                    problems.append(Problem("invalid", (path, key), "", _FORBIDDEN))
                continue
            test = found[0].get(type(item), found[1])
            if test is None:
                continue
            if before is None:
                test(item, (path, key), MISSING, problems)
            else:
                _check_part(test, item, (path, key), before.get(key, MISSING), problems)
        if sized:
            _check_size(len(value), least, most, path, problems)
        for key in needed:
            if key not in value:
                problems.append(Problem("required", (path, key), None, None))

    return check_object


def _check_size(
    size: int, least: int | None, most: int | None, path: Path, problems: list[Problem]
) -> None:
    if least is not None and size < least:
        why = f"should have at least {least} properties"
        problems.append(Problem("invalid", path, size, why))
    if most is not None and size > most:
        problems.append(Problem("too_many", path, size, most))


def _enum_tests(schema: Obj) -> list[Check]:
    allowed = schema.get("enum")
    if not allowed:
        return []
    shown = [item if isinstance(item, str) else orjson.dumps(item).decode() for item in allowed]

    def check_enum(value: Any, path: Path, _old: Any, problems: list[Problem]) -> None:
        if not any(_same(value, item) for item in allowed):
            problems.append(Problem("enum", path, value, shown))

    return [check_enum]


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    return bool(value == other)


def _combined_tests(schema: Obj) -> list[Check]:
    found: list[Check] = []
    if schema.get("anyOf"):
        found.append(_any_of(schema["anyOf"]))
    if schema.get("oneOf"):
        found.append(_one_of(schema["oneOf"]))
    if schema.get("allOf"):
        found.append(_all_of(schema["allOf"]))
    if schema.get("not") is not None:
        found.append(_not(schema["not"]))
    return found


def _any_of(schemas: list[Obj]) -> Check:
    checks = [_Compiled(schema).check for schema in schemas]

    def check_any(value: Any, path: Path, old: Any, problems: list[Problem]) -> None:
        failures: list[list[Problem]] = []
        for check in checks:
            found: list[Problem] = []
            check(value, path, old, found)
            if not found:
                return
            failures.append(found)
        why = "must validate at least one schema (anyOf)"
        problems.append(Problem("composite", path, None, why))
        problems.extend(_closest(schemas, failures, value))

    return check_any


def _one_of(schemas: list[Obj]) -> Check:
    checks = [_Compiled(schema).check for schema in schemas]

    def check_one(value: Any, path: Path, old: Any, problems: list[Problem]) -> None:
        failures: list[list[Problem]] = []
        for check in checks:
            found: list[Problem] = []
            check(value, path, old, found)
            if found:
                failures.append(found)
        good = len(checks) - len(failures)
        if good == 1:
            return
        told = f"Found {good} valid alternatives" if good else "Found none valid"
        why = f"must validate one and only one schema (oneOf). {told}"
        problems.append(Problem("composite", path, None, why))
        if not good:
            problems.extend(_closest(schemas, failures, value))

    return check_one


def _all_of(schemas: list[Obj]) -> Check:
    checks = [_Compiled(schema).check for schema in schemas]

    def check_all(value: Any, path: Path, old: Any, problems: list[Problem]) -> None:
        good = 0
        for check in checks:
            before = len(problems)
            check(value, path, old, problems)
            good += len(problems) == before
        if good == len(checks):
            return
        why = "must validate all the schemas (allOf)"
        problems.append(Problem("composite", path, None, why if good else f"{why}. None validated"))

    return check_all


def _not(schema: Obj) -> Check:
    check = _Compiled(schema).check

    def check_not(value: Any, path: Path, old: Any, problems: list[Problem]) -> None:
        found: list[Problem] = []
        check(value, path, old, found)
        if not found:
            why = "must not validate the schema (not)"
            problems.append(Problem("composite", path, None, why))

    return check_not


def _closest(schemas: list[Obj], failures: list[list[Problem]], value: Any) -> list[Problem]:
    """The problems with the alternative that asked most of the value; the first of equals."""
    weights = [_weight(schema, value) for schema in schemas]
    return failures[weights.index(max(weights))]


def _weight(schema: Obj, value: Any) -> int:
    """How many checks a value goes through, good or bad."""
    total = 1 + bool(schema.get("type") or schema.get("format"))
    total += isinstance(value, str) and formats.test_of(schema.get("format") or "") is not None
    if isinstance(value, dict):
        fields = schema.get("properties") or {}
        total += sum(_weight(fields[key], item) for key, item in value.items() if key in fields)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        total += sum(_weight(items, item) for item in value)
    return total
