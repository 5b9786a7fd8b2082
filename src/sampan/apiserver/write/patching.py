"""From a patch to the patched object.

Job: apply the patch of a call in the version that it speaks, and check what comes out. Pure.
"""

import orjson

from sampan.api.calls import Call
from sampan.api.defaults import changes_status_alone
from sampan.api.errors import Invalid, UnsupportedMediaType, invalid, invalid_value
from sampan.api.objects import Obj, copy_of, meta_of
from sampan.api.patch.json_patch import json_patch
from sampan.api.patch.merge_patch import merge_patch
from sampan.api.patch.strategic_patch import strategic_patch
from sampan.api.schema.published import NotHandled, Schema, strict_error
from sampan.apiserver.write.decoding import check_body, expected_kind

_OPERATION = frozenset({"op", "path", "from", "value"})
_NO_STRATEGIC = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


def apply_patch(schema: Schema, call: Call, current: Obj, warnings: list[str]) -> Obj:
    """A new object. Raises BadRequest, Invalid or UnsupportedMediaType."""
    api_version, kind = expected_kind(call.resource, call.subresource)
    left: tuple[str, ...] = ()
    match call.options.patch_type:
        case "json":
            result = json_patch(current, call.body)
        case "merge":
            left = _not_mentioned(current, call.body)
            result = merge_patch(_without(current, left), call.body)
        case "strategic" if call.resource.custom is not None:
            raise UnsupportedMediaType(_NO_STRATEGIC)
        case "strategic":
            left = _not_mentioned(current, call.body)
            result = strategic_patch(schema, api_version, kind, _without(current, left), call.body)
            # Only fields are merged: whatever kind the patch says it is, as upstream.
            result |= {"apiVersion": api_version, "kind": kind}
        case _:
            raise UnsupportedMediaType(
                "this subresource takes JSON, merge and strategic merge patches only"
            )
    try:
        _check_operations(call)
        new = check_body(schema, call, api_version, kind, result, warnings)
    except NotHandled as error:
        if call.options.patch_type not in ("json", "merge"):
            raise
        whole = {**result, **{key: current[key] for key in left}}
        raise _not_taken(whole, error.why) from error
    keeps_rest = changes_status_alone(call.resource, call.subresource)
    for key in left:
        if key == "metadata":
            new[key] = _own_metadata(current[key])
        else:
            new[key] = current[key] if keeps_rest else copy_of(current[key])
    return new


def _own_metadata(metadata: Obj) -> Obj:
    """Nobody changes an entry of managedFields in place; the rest is small."""
    own = metadata.copy()
    for key, value in metadata.items():
        if (type(value) is dict or type(value) is list) and key != "managedFields":
            own[key] = copy_of(value)
    return own


def _not_taken(whole: Obj, why: str) -> Invalid:
    """A strict patch is refused with what it would have made of the object."""
    if meta_of(whole).get("managedFields") is not None:  # an object as it is stored: no Go type
        text = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS).decode()
    else:
        text = orjson.dumps(dict(sorted(whole.items()))).decode()
    return invalid("", "", "", [invalid_value("patch", text, why)])


def _check_operations(call: Call) -> None:
    """Of a JSON patch. Raises NotHandled."""
    if call.options.patch_type != "json" or call.options.field_validation != "Strict":
        return
    unknown = [
        f'json patch unknown field "[{at}].{key}"'
        for at, item in enumerate(call.body)
        for key in item
        if key not in _OPERATION
    ]
    if unknown:
        raise strict_error(call.resource.api_version, call.resource.kind, unknown)


def _not_mentioned(current: Obj, patch: object) -> tuple[str, ...]:
    """Parts that the patch does not touch: they are good already, and need not be merged and
    checked again (a pod's spec is ten times its status)."""
    if not isinstance(patch, dict):
        return ()
    for key in patch:
        if key[:1] == "$":
            return ()
    said = patch.keys() - {"metadata"} if _repeats(current, patch) else patch
    return tuple([key for key in current if key not in said and key not in ("apiVersion", "kind")])


def _repeats(current: Obj, patch: Obj) -> bool:
    """Its metadata only names the object, as a kubelet does with its uid."""
    if "metadata" not in patch or type(patch["metadata"]) is not dict:
        return False
    metadata = current["metadata"]
    for key, value in patch["metadata"].items():
        if type(value) is not str or key not in metadata or value != metadata[key]:
            return False
    return True


def _without(current: Obj, left: tuple[str, ...]) -> Obj:
    return {key: value for key, value in current.items() if key not in left}
