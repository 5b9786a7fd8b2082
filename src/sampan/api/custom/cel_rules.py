"""x-kubernetes-validations: the rules of a schema, compiled once, run for each write.

Job: find every rule that an object breaks; a rule about a change only where there is an old value.
Invariant: all rules of one object share one budget; when it is used up nothing more is evaluated.
Invariant: where a part did not change, breaking a rule that looks at the new value alone is a
    warning, not an error.
"""

from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import Any

import orjson

from sampan.api.cel.catalog import KUBERNETES
from sampan.api.cel.language.cost import PER_POLICY, Budget
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError, CostExceeded, EvaluationError
from sampan.api.cel.language.types import BOOL, STRING, Type, optional_of
from sampan.api.cel.language.values import ABSENT, OptionalValue
from sampan.api.cel.program import Program, compile_expression
from sampan.api.custom.cel_types import Convert, StructuralObjects, converter
from sampan.api.custom.structural import MISSING, Structural, has_rules
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    required_value,
)
from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_MESSAGE_BYTES = 5 * 1024  # of a message expression's result, beyond which it is not shown


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    program: Program
    message: str
    message_program: Program | None
    reason: str
    field_path: str
    is_transition: bool
    is_optional: bool  # oldSelf may be absent


@dataclass(slots=True)
class Found:
    """What one object's rules say."""

    budget: Budget = field(default_factory=lambda: Budget(PER_POLICY))
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class OutOfBudget(Exception):
    """No further rule of this object is run."""


# (value, its path, the old value, findings)
Walk = Callable[[Any, str, Any, Found], None]


@cache
def base_environment() -> Environment:
    return Environment({}, KUBERNETES)


def environment_of(
    objects: StructuralObjects, self_type: Type, rule: Obj, *, with_old: bool = True
) -> Environment:
    variables = {"self": self_type}
    if with_old:
        optional = bool(rule.get("optionalOldSelf"))
        variables["oldSelf"] = optional_of(self_type) if optional else self_type
    return base_environment().extended(variables, objects)


class Rules:
    """Of a schema. Those that do not compile were refused when it was written."""

    def __init__(self, node: Structural, is_object: bool = True) -> None:
        self._walk = _walk(node, StructuralObjects(), "selfType", is_object)

    def run(self, value: Any, old: Any = MISSING, path: str = "") -> Found:
        found = Found()
        if self._walk is None:
            return found
        try:
            self._walk(value, path, old, found)
        except OutOfBudget:
            found.errors.append(invalid_value("<nil>", "", OUT_OF_BUDGET))
        return found


def _walk(node: Structural, objects: StructuralObjects, name: str, is_object: bool) -> Walk | None:
    if not has_rules(node):
        return None
    rules = _rules_of(node, objects, name, is_object)
    convert = converter(node, is_object)
    below = _below(node, objects, name)

    def walk(value: Any, path: str, old: Any, found: Found) -> None:
        if value is None:
            return
        if rules:
            _run(rules, convert, value, path, old, found)
        if below is not None:
            below(value, path, old, found)

    return walk


def _rules_of(
    node: Structural, objects: StructuralObjects, name: str, is_object: bool
) -> list[Rule]:
    if not node.rules:
        return []
    self_type = objects.type_of(node, name, is_object)
    if self_type is None:
        return []
    made = (compiled_rule(rule, objects, self_type) for rule in node.rules)
    return [item for item in made if item is not None]


def compiled_rule(rule: Obj, objects: StructuralObjects, self_type: Type) -> Rule | None:
    """None where it does not compile."""
    text = rule.get("rule") or ""
    try:
        environment = environment_of(objects, self_type, rule)
        program = compile_expression(text, environment)
        said = (rule.get("messageExpression") or "").strip()
        message = compile_expression(said, environment) if said else None
    except CompileError:
        return None
    if program.result_type != BOOL or (message is not None and message.result_type != STRING):
        return None
    return Rule(
        text,
        program,
        rule.get("message") or "",
        message,
        rule.get("reason") or "FieldValueInvalid",
        rule.get("fieldPath") or "",
        "oldSelf" in program.variables,
        bool(rule.get("optionalOldSelf")),
    )


def _below(node: Structural, objects: StructuralObjects, name: str) -> Walk | None:
    fields = {
        key: _walk(prop, objects, f"{name}.{key}", False) for key, prop in node.properties.items()
    }
    wanted = {key: entry for key, entry in fields.items() if entry is not None}
    others = (
        _walk(node.additional, objects, f"{name}.@values", False)
        if isinstance(node.additional, Structural)
        else None
    )
    items = None if node.items is None else _walk(node.items, objects, f"{name}.@items", False)
    keys = node.map_keys if node.list_type == "map" else ()
    correlates = node.map_type != "atomic"

    def below(value: Any, path: str, old: Any, found: Found) -> None:
        if type(value) is dict:
            before = old if correlates and type(old) is dict else {}
            for key, item in value.items():
                walk = wanted.get(key)
                if walk is not None:
                    walk(item, f"{path}.{key}" if path else key, before.get(key, MISSING), found)
                elif others is not None and key not in fields:
                    others(item, f"{path}[{key}]", before.get(key, MISSING), found)
        elif type(value) is list and items is not None:
            known = _by_keys(old, keys) if keys and type(old) is list else {}
            for at, item in enumerate(value):
                was = known.get(_keys_of(item, keys), MISSING) if known else MISSING
                items(item, f"{path}[{at}]", was, found)

    return below if wanted or others is not None or items is not None else None


def _by_keys(items: list[Any], keys: tuple[str, ...]) -> dict[bytes, Any]:
    return {_keys_of(item, keys): item for item in items}


def _keys_of(item: Any, keys: tuple[str, ...]) -> bytes:
    return orjson.dumps([item.get(key) for key in keys]) if type(item) is dict else b""


def _old_variables(rule: Rule, known: bool, old_value: Any) -> dict[str, Any]:
    if rule.is_optional:
        return {"oldSelf": OptionalValue(old_value) if known else ABSENT}
    return {"oldSelf": old_value} if known else {}


def _run(
    rules: list[Rule], convert: Convert | None, value: Any, path: str, old: Any, found: Found
) -> None:
    try:
        new_value = value if convert is None else convert(value)
        known = old is not MISSING and old is not None
        old_value = (old if convert is None else convert(old)) if known else None
    except EvaluationError as error:
        found.errors.append(invalid_value(path, value, f"failed to convert: {error}"))
        return
    for rule in rules:
        if rule.is_transition and not known and not rule.is_optional:
            continue
        variables = {"self": new_value, **_old_variables(rule, known, old_value)}
        broken = _verdict(rule, variables, value, path, found)
        if broken is None:
            continue
        if known and not rule.is_transition and old == value:
            found.warnings.append(str(broken))
        else:
            found.errors.append(broken)


def _verdict(
    rule: Rule, variables: dict[str, Any], value: Any, path: str, found: Found
) -> FieldError | None:
    try:
        if rule.program.evaluate(variables, found.budget) is True:
            return None
    except EvaluationError as error:
        return _broken_by(rule, path, value, error)
    except CostExceeded as error:
        if found.budget.left <= 0:
            raise OutOfBudget from error
        why = f"'{rule.text}': no further validation rules will be run due to call cost exceeds"
        return invalid_value(path, value, f"{why} limit for rule: {rule.text}")
    return _error(rule, variables, value, path, found)


def _broken_by(rule: Rule, path: str, value: Any, error: EvaluationError) -> FieldError:
    said = rule.message or rule.text.strip()
    return shown_error("FieldValueInvalid", path, value, f"{error} evaluating rule: {said}")


def _error(
    rule: Rule, variables: dict[str, Any], value: Any, path: str, found: Found
) -> FieldError:
    detail = _message(rule, variables, found)
    where = path
    if rule.field_path:
        where = f"{path}{rule.field_path}" if path else rule.field_path.removeprefix(".")
        return shown_error(rule.reason, _dotted_path(where), {}, detail)
    return shown_error(rule.reason, where, value, detail)


def _dotted_path(path: str) -> str:
    """`spec['a-b']` is written `spec.a-b`."""
    return path.replace("['", ".").replace("']", "")


def _message(rule: Rule, variables: dict[str, Any], found: Found) -> str:
    if rule.message_program is not None:
        try:
            said = rule.message_program.evaluate(variables, found.budget)
        except EvaluationError:
            said = ""
        except CostExceeded as error:
            if found.budget.left <= 0:
                raise OutOfBudget from error
            said = ""
        text = said.strip() if isinstance(said, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _MESSAGE_BYTES:
            return text
    return rule.message or f"failed rule: {rule.text.strip()}"


def shown_error(reason: str, path: str, value: Any, detail: str) -> FieldError:
    """Objects and lists are not printed: they may be large."""
    if reason == "FieldValueRequired":
        return required_value(path, detail)
    if reason == "FieldValueForbidden":
        return field_forbidden(path, detail)
    if reason == "FieldValueDuplicate":
        return duplicate(path, value)
    if isinstance(value, dict | list):
        return FieldError(reason, path, f"Invalid value: {detail}")
    return invalid_value(path, value, detail)
