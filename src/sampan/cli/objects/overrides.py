"""`--overrides`: a change to a generated object, given on the command line.

Job: JSON patch, merge patch or strategic merge patch over the object; then it is an object again.
"""

import json
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.patch.json_patch import json_patch
from sampan.api.patch.merge_patch import merged_value
from sampan.api.patch.strategic_patch import strategic_patch
from sampan.cli.errors import CliError
from sampan.cli.objects.typed import decode, schema


def overridden(obj: Obj, text: str, kind: str) -> Obj:
    match kind:
        case "merge":
            return decode(_merge(obj, text))
        case "strategic":
            return decode(_strategic(obj, text))
        case "json":
            return decode(_patch(obj, text))
        case _:
            raise CliError(f"invalid override type: {kind}")


def _merge(obj: Obj, text: str) -> Any:
    try:
        change: Any = json.loads(text)
    except ValueError:
        raise CliError("Invalid JSON Patch") from None
    if not isinstance(change, (dict, list)):
        raise CliError("Invalid JSON Patch")
    return merged_value(obj, change)


def _strategic(obj: Obj, text: str) -> Any:
    try:
        change: Any = json.loads(text)
    except ValueError:
        raise CliError("invalid JSON document") from None
    if not isinstance(change, dict):
        raise CliError("invalid JSON document")
    try:
        return strategic_patch(schema(), obj["apiVersion"], obj["kind"], obj, change)
    except ApiError as error:
        raise CliError(error.message) from error


def _patch(obj: Obj, text: str) -> Any:
    try:
        change: Any = json.loads(text)
    except ValueError:
        from sampan.api.strict_json import syntax_complaint

        raise CliError(syntax_complaint(text)) from None
    if not isinstance(change, list):
        kind = "object" if isinstance(change, dict) else "string"
        raise CliError(f"json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch")
    for operation in change:
        if operation.get("op") not in ("add", "remove", "replace", "move", "copy", "test"):
            raise CliError(f"Unexpected kind: {operation.get('op')}")
    try:
        return json_patch(obj, change)
    except ApiError as error:
        why = str(error.__cause__ or error)
        if "doc is missing key" in why:
            why = f"Object to be patched is missing field ({why.partition('key: ')[2]})"
        raise CliError(why) from error


def overridden_data(obj: Obj, change: Any, kind: str) -> Obj:
    """The object with a patch over it, not checked against any type."""
    if kind == "json":
        patched: Obj = _patch(obj, json.dumps(change))
        return patched
    if kind == "merge":
        merged: Obj = merged_value(obj, change)
        return merged
    found: Obj = _strategic(obj, json.dumps(change))
    return found


def patched_data(obj: Obj, text: str, kind: str) -> Obj:
    """As `overridden_data`, of a patch as text."""
    by = {"json": _patch, "merge": _merge, "strategic": _strategic}[kind]
    found: Obj = by(obj, text)
    return found
