"""From a patch to the patched object.

Job: apply the patch of a call in the version that it speaks, and check what comes out. Pure.
"""

from sampan.api.calls import Call
from sampan.api.errors import UnsupportedMediaType
from sampan.api.objects import Obj, copy_of
from sampan.api.patch.json_patch import json_patch
from sampan.api.patch.merge_patch import merge_patch
from sampan.api.patch.strategic_patch import strategic_patch
from sampan.api.schema.published import Schema
from sampan.apiserver.write.decoding import checked, expected_kind


def patched(schema: Schema, call: Call, current: Obj, warnings: list[str]) -> Obj:
    """A new object. Raises BadRequest, Invalid or UnsupportedMediaType."""
    api_version, kind = expected_kind(call.resource, call.subresource)
    left: tuple[str, ...] = ()
    match call.options.patch_type:
        case "json":
            result = json_patch(current, call.body)
        case "merge":
            left = _not_mentioned(current, call.body)
            result = merge_patch(_without(current, left), call.body)
        case "strategic":
            left = _not_mentioned(current, call.body)
            result = strategic_patch(schema, api_version, kind, _without(current, left), call.body)
        case _:
            raise UnsupportedMediaType(
                "this subresource takes JSON, merge and strategic merge patches only"
            )
    new = checked(schema, call, api_version, kind, result, warnings)
    for key in left:
        new[key] = copy_of(current[key])
    return new


def _not_mentioned(current: Obj, patch: object) -> tuple[str, ...]:
    """Parts that the patch does not touch: they are good already, and need not be merged and
    checked again (a pod's spec is ten times its status)."""
    if not isinstance(patch, dict) or any(key.startswith("$") for key in patch):
        return ()
    return tuple(key for key in current if key not in patch and key not in ("apiVersion", "kind"))


def _without(current: Obj, left: tuple[str, ...]) -> Obj:
    return {key: value for key, value in current.items() if key not in left}
