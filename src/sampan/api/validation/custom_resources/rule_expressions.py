"""x-kubernetes-validations of a schema: do the rules compile, and can they be afforded?

Job: schema → causes, worded as upstream words them.
Invariant: expressions are compiled only where the schema around them is in order.
"""

import re

import orjson

from sampan.api.cel.language.checker import Checked
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError
from sampan.api.cel.language.sizes import capped
from sampan.api.cel.language.types import BOOL, STRING, Type
from sampan.api.cel.program import check_expression
from sampan.api.custom.cel_rules import environment_of
from sampan.api.custom.cel_sizes import Extent, extent_of
from sampan.api.custom.cel_types import StructuralObjects
from sampan.api.custom.structural import Structural, structural_of
from sampan.api.errors import FieldError, invalid_value, not_supported, required_value
from sampan.api.objects import Obj
from sampan.api.validation.custom_resources.rule_costs import RuleCosts, most_below
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]

_REASONS = (
    "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired",
)  # fmt: skip
_NO_TYPES = (
    "Internal error: internal error: failed to construct type information for "
    "x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
)
_PATH_STEP = lazy_pattern(r"\.([a-zA-Z_][a-zA-Z0-9_]*)|\['((?:[^'\\]|\\.)+)'\]")


def validate_rules(schema: Obj, path: str, errors: Errors, *, is_known: bool = False) -> None:
    """`is_known`: the definition had this schema before."""
    walk = _Walk(errors, is_known)
    walk.visit(structural_of(schema), _Place(path, "selfType", "", 1, True))
    walk.costs.add_total(path, errors)


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    type_name: str
    uncorrelated: str  # the list below which an item has no old value; empty: none
    count: int | None  # how often there may be such a value in one object; None: any number
    is_object: bool = False


class _Walk:
    def __init__(self, errors: Errors, is_known: bool) -> None:
        self._errors = errors
        self._objects = StructuralObjects()
        self.costs = RuleCosts(is_known)

    def visit(self, node: Structural, place: _Place) -> None:
        before = len(self._errors)
        for child, where in self._below(node, place):
            self.visit(child, where)
        for at, rule in enumerate(node.rules):
            self._check_texts(rule, node, f"{place.path}.x-kubernetes-validations[{at}]")
        if node.rules and len(self._errors) == before:
            self._compile(node, place)

    def _below(self, node: Structural, place: _Place) -> list[tuple[Structural, _Place]]:
        most = most_below(node)
        count = None if most is None or place.count is None else capped(place.count * most)
        lost = place.uncorrelated
        found = []
        for key, prop in node.properties.items():
            path, name = f"{place.path}.properties[{key}]", f"{place.type_name}.{key}"
            parent = lost or (place.path if node.map_type == "atomic" else "")
            found.append((prop, _Place(path, name, parent, count)))
        if node.items is not None:
            parent = lost or ("" if node.list_type == "map" else place.path)
            where = _Place(f"{place.path}.items", f"{place.type_name}.@items", parent, count)
            found.append((node.items, where))
        if isinstance(node.additional, Structural):
            path, name = f"{place.path}.additionalProperties", f"{place.type_name}.@values"
            found.append((node.additional, _Place(path, name, lost, count)))
        return found

    def _check_texts(self, rule: Obj, node: Structural, path: str) -> None:
        errors, text = self._errors, rule.get("rule") or ""
        message, said = rule.get("message") or "", rule.get("messageExpression") or ""
        if not text.strip():
            errors.append(required_value(f"{path}.rule", "rule is not specified"))
        if message and not message.strip():
            why = "must be non-empty if specified"
            errors.append(invalid_value(f"{path}.message", message, why))
        elif "\n" in message:
            errors.append(invalid_value(f"{path}.message", message, "must not contain line breaks"))
        elif "\n" in text.strip() and not message:
            why = "message must be specified if rule contains line breaks"
            errors.append(required_value(f"{path}.message", why))
        if said and not said.strip():
            why = "messageExpression must be non-empty if specified"
            errors.append(required_value(f"{path}.messageExpression", why))
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            errors.append(not_supported(f"{path}.reason", reason, _REASONS))
        self._check_field_path(rule.get("fieldPath") or "", node, f"{path}.fieldPath")

    def _check_field_path(self, given: str, node: Structural, path: str) -> None:
        if not given:
            return
        if not given.strip():
            why = "must be non-empty if specified"
            self._errors.append(invalid_value(path, given, why))
        elif "\n" in given:
            self._errors.append(invalid_value(path, given, "must not contain line breaks"))
        if not _leads_somewhere(given, node):
            self._errors.append(invalid_value(path, given, "must be a valid path"))

    def _compile(self, node: Structural, place: _Place) -> None:
        self_type = self._objects.type_of(node, place.type_name, place.is_object)
        extent = extent_of(node, place.is_object)
        if self_type is None or extent is None:
            path = f"{place.path}.x-kubernetes-validations"
            self._errors.append(FieldError("InternalError", path, _NO_TYPES))
            return
        for at, rule in enumerate(node.rules):
            path = f"{place.path}.x-kubernetes-validations[{at}]"
            self._compile_rule(rule, self_type, extent, place, path)

    def _compile_rule(
        self, rule: Obj, self_type: Type, extent: Extent, place: _Place, path: str
    ) -> None:
        errors = self._errors
        environment = environment_of(self._objects, self_type, rule)
        checked = self._checked(rule, rule.get("rule") or "", environment, f"{path}.rule", "")
        if checked is not None and checked.result_type != BOOL:
            why = "cel expression must evaluate to a bool"
            errors.append(_refusal(rule, f"{path}.rule", why))
            checked = None
        if checked is not None:
            self.costs.add_rule(checked, extent, place.count, f"{path}.rule", errors)
        said = (rule.get("messageExpression") or "").strip()
        if said:
            self._compile_message(rule, said, extent, environment, path)
        uses_old = checked is not None and "oldSelf" in checked.variables
        if rule.get("optionalOldSelf") is not None and not uses_old:
            why = "may not be set if oldSelf is not used in rule"
            errors.append(invalid_value(f"{path}.optionalOldSelf", rule["optionalOldSelf"], why))
        if uses_old and place.uncorrelated:
            why = (
                "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                f"{place.uncorrelated}"
            )
            errors.append(invalid_value(f"{path}.rule", rule["rule"], why))

    def _compile_message(
        self, rule: Obj, said: str, extent: Extent, environment: Environment, path: str
    ) -> None:
        where = f"{path}.messageExpression"
        checked = self._checked(rule, said, environment, where, "messageExpression ")
        if checked is None:
            return
        if checked.result_type != STRING:
            why = "messageExpression must evaluate to a string"
            self._errors.append(_refusal(rule, where, why))
            return
        self.costs.add_message(checked, extent, where, self._errors)

    def _checked(
        self, rule: Obj, text: str, environment: Environment, path: str, what: str
    ) -> Checked | None:
        try:
            return check_expression(text, environment)
        except CompileError as error:
            self._errors.append(_refusal(rule, path, f"{what}compilation failed: {error}"))
            return None


def _refusal(rule: Obj, path: str, why: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, f"Invalid value: {_show(rule)}: {why}")


def _internal(rule: Obj) -> Obj:
    """As upstream's own form has it."""
    return {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


def _show(rule: Obj) -> str:
    """Go escapes what would be markup in a page."""
    text = orjson.dumps(_internal(rule)).decode()
    for char, code in (("<", "003c"), (">", "003e"), ("&", "0026")):
        text = text.replace(char, f"\\u{code}")
    return text


def _leads_somewhere(path: str, node: Structural) -> bool:
    """Fields only, and such that the schema declares."""
    at, here = 0, node
    while at < len(path):
        step = _PATH_STEP.match(path, at)
        if step is None:
            return False
        key = step[1] or re.sub(r"\\(.)", r"\1", step[2])
        found = here.properties.get(key)
        if found is None:
            return False
        here, at = found, step.end()
    return True
