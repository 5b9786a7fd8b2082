"""Patches of every type, applied to an object.

Job: apply the patch of a call in the version that it speaks, and check what comes out. Pure.
Invariant: what a patch makes that is no object of the kind is refused with what it would have made.
"""

from typing import Any

import orjson

from sampan.api.calls import Call
from sampan.api.custom.custom_version import CustomVersion, custom_of
from sampan.api.decode_scalars import Mismatch, json_word, unstructured_text
from sampan.api.defaults import changes_status_alone
from sampan.api.errors import Invalid, UnsupportedMediaType, internal_error, invalid, invalid_value
from sampan.api.go_quoting import escape_html
from sampan.api.go_text import go_value
from sampan.api.objects import Obj, copy_of, name_of
from sampan.api.patch.json_patch import json_patch
from sampan.api.patch.merge_patch import merge_patch
from sampan.api.patch.strategic_patch import printed_patch, strategic_patch
from sampan.api.resources import by_kind
from sampan.api.schema.published import NotHandled, Schema
from sampan.apiserver.write.decoding import decode_custom, expected_kind, judge, typed_object
from sampan.apiserver.write.past_versions import is_past_version, with_past_defaults

_NO_KIND = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {0} into Go value of type "
    'struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }}'
)


def apply_patch(schema: Schema, call: Call, current: Obj, warnings: list[str]) -> Obj:
    """A new object. Raises BadRequest, Failure, Invalid or UnsupportedMediaType."""
    left: tuple[str, ...] = ()
    match call.options.patch_type:
        case "json":
            made = json_patch(current, call.body)
            new = _Made(schema, call, made, made, warnings).read()
        case "merge":
            left = _not_mentioned(current, call.body)
            made = merge_patch(_without(current, left), call.body)
            whole = {**made, **{key: current[key] for key in left}}
            new = _Made(schema, call, made, whole, warnings).read()
        case "strategic" if call.resource.custom is not None:
            raise UnsupportedMediaType("a custom kind takes no strategic merge patches")
        case "strategic":
            left = _not_mentioned(current, call.body)
            new = _strategic(schema, call, _without(current, left), warnings)
        case _:
            raise UnsupportedMediaType(
                "this subresource takes JSON, merge and strategic merge patches only"
            )
    keeps_rest = changes_status_alone(call.resource, call.subresource)
    for key in left:
        if key == "metadata":
            new[key] = _own_metadata(current[key])
        else:
            new[key] = current[key] if keeps_rest else copy_of(current[key])
    return new


def _strategic(schema: Schema, call: Call, current: Obj, warnings: list[str]) -> Obj:
    """Only fields are merged: whatever kind the patch says it is, as upstream."""
    api_version, kind = expected_kind(call.resource, call.subresource)
    made = strategic_patch(schema, api_version, kind, current, call.body)
    for key in ("apiVersion", "kind"):
        if not isinstance(made.get(key) or "", str):
            shown = go_value(printed_patch(current, call.body))
            problem = Mismatch(json_word(made[key]), ((), key), "string")
            raise _refusal(shown, unstructured_text(made, problem))
    made |= {"apiVersion": api_version, "kind": kind}
    if schema.name_of(api_version, kind) is None:
        return copy_of(made)  # type: ignore[no-any-return]  # an object
    try:
        found = schema.check_unstructured(api_version, kind, made)
        judge(call, api_version, kind, [*call.problems, *found.unknown], warnings)
    except NotHandled as error:
        raise _refusal(go_value(printed_patch(current, call.body)), error.why) from error
    return typed_object(found, api_version, kind, made)


class _Made:
    """What a JSON or merge patch has made: a text, which is read as a body is."""

    def __init__(
        self, schema: Schema, call: Call, made: Any, whole: Any, warnings: list[str]
    ) -> None:
        """`whole`: with what the patch does not touch, which is good already."""
        self._schema, self._call, self._warnings = schema, call, warnings
        self._made, self._whole = made, whole
        self._expected = expected_kind(call.resource, call.subresource)

    def read(self) -> Obj:
        made, (_, kind) = self._made, self._expected
        if not isinstance(made, dict):
            raise self._refused(_NO_KIND.format(json_word(made)))
        for key in ("apiVersion", "kind"):
            if not isinstance(made.get(key) or "", str):
                word = json_word(made[key])
                raise self._refused(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal "
                    f"{word} into Go struct field .{key} of type string"
                )
        given = str(made.get("apiVersion") or "")
        if given.count("/") > 1:
            raise self._refused(f"unexpected GroupVersion string: {given}")
        custom = custom_of(self._call.resource)
        try:
            if custom is not None and kind == custom.kind:
                return self._custom(custom, made)
            return self._typed(made)
        except NotHandled as error:
            raise self._refused(error.why) from error

    def _typed(self, made: Obj) -> Obj:
        version, kind = self._expected
        given_version, given_kind = made.get("apiVersion") or "", made.get("kind") or kind
        is_past = is_past_version(given_version, given_kind)
        if given_version and not is_past and by_kind(given_version, given_kind) is None:
            known = self._schema.name_of(given_version, given_kind)
            if known is None:
                raise self._refused(
                    f'no kind "{given_kind}" is registered for version "{given_version}"'
                )
        if given_kind != kind:
            raise self._refused(_no_conversion(given_version, given_kind, version, kind))
        if self._schema.name_of(version, kind) is None:
            return {**copy_of(made), "apiVersion": version, "kind": kind}
        # Without a version it is read as the server's own form of the kind, none of whose fields
        # has a name in JSON.
        fields = made if given_version else {}
        found = self._schema.check(version, kind, fields)
        unknown = found.unknown if given_version else _all_unknown(self._whole)
        judge(self._call, version, kind, [*self._call.problems, *unknown], self._warnings)
        obj = typed_object(found, version, kind, fields)
        return with_past_defaults(given_version, obj) if is_past else obj

    def _custom(self, custom: CustomVersion, made: Obj) -> Obj:
        version, kind = made.get("apiVersion") or "", made.get("kind") or ""
        if not kind:
            text = self._text()
            raise self._refused(f"Object 'Kind' is missing in '{text}'")
        if not version:
            raise internal_error(
                "Object 'apiVersion' is missing in 'object has no apiVersion field'"
            )
        wrong = []
        if version != custom.api_version:
            wrong.append(invalid_value("apiVersion", version, f"must be {custom.api_version}"))
        if kind != custom.kind:
            wrong.append(invalid_value("kind", kind, f"must be {custom.kind}"))
        if wrong:
            group = version.rpartition("/")[0]
            raise invalid(kind, group, name_of(self._whole), wrong)
        return decode_custom(self._call, custom, made, self._warnings)

    def _refused(self, why: str) -> Invalid:
        return _refusal(self._text(), why)

    def _text(self) -> str:
        return escape_html(orjson.dumps(self._whole, option=orjson.OPT_SORT_KEYS).decode())


def _refusal(made: str, why: str) -> Invalid:
    return invalid("", "", "", [invalid_value("patch", made, why)])


def _no_conversion(given_version: str, given_kind: str, version: str, kind: str) -> str:
    group = version.rpartition("/")[0].partition(".")[0] or "core"
    given = f"{given_version.rpartition('/')[2]}.{given_kind}"
    return f"converting ({given}) to ({group}.{kind}): unknown conversion"


def _all_unknown(whole: Obj) -> list[str]:
    return [f'unknown field "{key}"' for key in sorted(whole) if key not in ("apiVersion", "kind")]


def _own_metadata(metadata: Obj) -> Obj:
    """Nobody changes an entry of managedFields in place; the rest is small."""
    own = metadata.copy()
    for key, value in metadata.items():
        if (type(value) is dict or type(value) is list) and key != "managedFields":
            own[key] = copy_of(value)
    return own


def _not_mentioned(current: Obj, patch: object) -> tuple[str, ...]:
    """Parts that the patch does not touch: they are good already, and need not be merged and
    checked again (a pod's spec is ten times its status)."""
    if not isinstance(patch, dict):
        return ()
    for key in patch:
        if key[:1] == "$" or key == "apiVersion":
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
