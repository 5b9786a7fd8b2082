"""Patches of a MutatingAdmissionPolicy: ApplyConfiguration and JSONPatch. Pure.

Job: the value of an expression → the object with the configuration applied, or with the patch.
Invariant: the object that comes in is not changed.
"""

from typing import Any

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_types import Node
from sampan.api.apply.typed_values import atomics, merged, problems
from sampan.api.cel.json_form import to_json
from sampan.api.cel.language.evaluator import ObjectValue
from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of
from sampan.api.patch.json_patch import NotAsTested, json_patch

_OPERATION = ("op", "path", "from")


class Unpatchable(Exception):
    """The value cannot be put over the object; the failure policy decides."""


def apply_patch(fields: FieldSchema, obj: Obj, value: Any) -> Obj:
    """`Object{…}` merged into the object, as server-side apply would, without owners."""
    if not isinstance(value, ObjectValue):
        raise Unpatchable("unsupported return type from ApplyConfiguration expression")
    check_names(value, "Object")
    config: Obj = {**to_json(value), "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    root = fields.root(obj["apiVersion"], obj["kind"])
    if root is None:
        raise Unpatchable(f"Resource kind {obj['kind']} not found")
    return _merge(root, obj, config)


def _merge(root: Node, obj: Obj, config: Obj) -> Obj:
    wrong = list(problems(root, config))
    if wrong:
        raise Unpatchable(
            "error applying patch: failed to convert patch object to typed object: "
            + "; ".join(wrong)
        )
    replaced = list(atomics(root, config))
    if replaced:
        raise Unpatchable(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, "
            f"maps or structs: {', '.join(replaced)}"
        )
    together: Obj = merged(root, copy_of(obj), config)
    return together


def check_names(value: Any, path: str) -> None:
    """`Object{spec: Object.metadata{}}` names another type than the field has."""
    if isinstance(value, ObjectValue):
        if value.type_name != path:
            raise Unpatchable(
                f'type mismatch: unexpected type name "{value.type_name}", expected "{path}", '
                "which matches field name path from root Object type"
            )
        for key, inner in value.items():
            check_names(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            check_names(inner, path)


def patch_object(obj: Obj, value: Any) -> Obj:
    """`[JSONPatch{…}, …]`, one after the other; a test that fails leaves the object as it is."""
    operations = [_operation(item) for item in value]
    try:
        made = json_patch(obj, operations)
    except ApiError as error:
        if isinstance(error.__cause__, NotAsTested):
            return obj
        raise Unpatchable(f"JSONPath: {error.__cause__ or error}") from error
    if not isinstance(made, dict):
        raise Unpatchable("JSONPath: the patch leaves no object")
    return made


def _operation(value: Any) -> Obj:
    if not isinstance(value, ObjectValue) or value.type_name != "JSONPatch":
        raise Unpatchable(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
        )
    found: Obj = {key: value[key] for key in _OPERATION if value.get(key)}
    found.setdefault("path", "")
    if "value" in value:
        given = value["value"]
        if isinstance(given, ObjectValue):
            check_names(given, given.type_name)
        found["value"] = to_json(given)
    return found
