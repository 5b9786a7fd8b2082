"""JSON Merge Patch (RFC 7386), as the library of the original applies it.

Job: lay a patch over a document: null removes, objects merge, everything else replaces. Pure.
Invariant: the result holds no null that came from the patch's objects, where it replaces no object
    by a list.
"""

from typing import Any

from sampan.api.errors import BadRequest
from sampan.api.objects import Obj, copy_of


def merge_patch(document: Obj, patch: Any) -> Obj:
    """The patched object; shares nothing with either input."""
    if not isinstance(patch, dict):
        raise BadRequest("Invalid JSON Patch")
    merged: Obj = merged_value(document, patch)
    return merged


def merged_value(target: Any, patch: Any) -> Any:
    """As the original's library: nulls are left out inside of lists too, wherever the patch meets
    no object."""
    if not isinstance(target, dict):
        return _pruned(patch)
    if not isinstance(patch, dict):
        return copy_of(patch)
    out = copy_of(target)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged_value(out.get(key), value)
    return out


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


def merge_patch_between(before: Any, after: Any) -> Any:
    """The smallest patch that turns `before` into `after`, for data without nulls."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return copy_of(after)
    patch: Obj = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = copy_of(value)
        elif before[key] != value:
            patch[key] = merge_patch_between(before[key], value)
    return patch
