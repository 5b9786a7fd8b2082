"""Defaults of a schema: each must be a value that its own part of the schema accepts.

Job: structural schema → causes.
"""

from sampan.api.custom import value_validation
from sampan.api.custom.pruning import compile_unfilled
from sampan.api.custom.structural import MISSING, Structural, has_rules, structural_of
from sampan.api.decode_scalars import Path
from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj
from sampan.api.validation.custom_resources.custom_object import validate_embedded

Errors = list[FieldError]


def validate_defaults(schema: Obj, path: str, errors: Errors) -> None:
    root = structural_of(schema)
    if root.default is not MISSING and isinstance(root.default, dict):
        validate_embedded(root.default, f"{path}.default", errors)
    elif root.default is not MISSING:
        _validate_default(root, path, errors)
    _validate_below(root, path, errors)


def _validate_below(node: Structural, path: str, errors: Errors) -> None:
    below = [(prop, f"{path}.properties[{key}]") for key, prop in node.properties.items()]
    if node.items is not None:
        below.append((node.items, f"{path}.items"))
    if isinstance(node.additional, Structural):
        below.append((node.additional, f"{path}.additionalProperties"))
    for item, place in below:
        if item.default is not MISSING:
            _validate_default(item, place, errors)
        _validate_below(item, place, errors)


def _validate_default(node: Structural, path: str, errors: Errors) -> None:
    place, value = f"{path}.default", node.default
    unknown: list[Path] = []
    compile_unfilled(node)(value, (), unknown)
    if unknown:
        errors.append(invalid_value(place, value, "must not have unknown fields"))
    found: Errors = []
    if node.embedded and isinstance(value, dict):
        validate_embedded(value, place, found)
    if not found:
        problems = value_validation.check_value(value_validation.compile_checks(node.schema), value)
        found += value_validation.field_errors(problems, place)
    if not found and not unknown and has_rules(node):
        from sampan.api.custom.cel_rules import Rules

        found += Rules(node, is_object=node.embedded).run(value, path=place).errors
    errors += found
