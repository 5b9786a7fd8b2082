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
    except ValueError as error:
        raise CliError(str(error)) from None
    if not isinstance(change, list):
        kind = "object" if isinstance(change, dict) else "string"
        raise CliError(f"json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch")
    for operation in change:
        if operation.get("op") not in ("add", "remove", "replace", "move", "copy", "test"):
            raise CliError(f"Unexpected kind: {operation.get('op')}")
    try:
        return json_patch(obj, change)
    except ApiError as error:
        raise CliError(_complaint(error, change)) from error


def _complaint(error: ApiError, change: list[Obj]) -> str:
    """The words of kubectl's own patch library."""
    from sampan.api.patch.json_patch import NotAsTested

    last = next((operation for operation in change if operation.get("op") == "test"), change[-1])
    path = str(last.get("path"))
    if isinstance(error.__cause__, NotAsTested):
        return f"testing value {path} failed: test failed"
    kind = str(change[-1].get("op"))
    return (
        f"{kind} operation does not apply: doc is missing path: {change[-1].get('path')}: missing "
        "value"
    )


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
