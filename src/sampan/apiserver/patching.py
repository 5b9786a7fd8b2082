"""From a patch to the patched object.

Job: apply the patch of a call in the version that it speaks, and check what comes out. Pure.
"""

from sampan.api.calls import Call
from sampan.api.errors import UnsupportedMediaType
from sampan.api.json_patch import json_patch
from sampan.api.merge_patch import merge_patch
from sampan.api.objects import Obj
from sampan.api.schema import Schema
from sampan.api.strategic_patch import strategic_patch
from sampan.apiserver.decoding import checked, expected_kind


def patched(schema: Schema, call: Call, current: Obj, warnings: list[str]) -> Obj:
    """A new object. Raises BadRequest, Invalid or UnsupportedMediaType."""
    api_version, kind = expected_kind(call.resource, call.subresource)
    match call.options.patch_type:
        case "json":
            result = json_patch(current, call.body)
        case "merge":
            result = merge_patch(current, call.body)
        case "strategic":
            result = strategic_patch(schema, api_version, kind, current, call.body)
        case _:
            raise UnsupportedMediaType(
                "this subresource takes JSON, merge and strategic merge patches only"
            )
    return checked(schema, call, api_version, kind, result, warnings)
