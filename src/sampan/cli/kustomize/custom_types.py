"""Types of one's own: `openapi` of a kustomization.

Job: a file of OpenAPI definitions → types for strategic merge patches.
Invariant: as kustomize has it, types of one's own stand for all: of a kind that they do not have,
    lists are replaced.
"""

import json
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.api.schema.published import Schema
from sampan.cli.errors import CliError
from sampan.cli.kustomize.loading import text_of
from sampan.cli.objects import documents

TYPES = "types"  # among a patch's settings
BUILT_IN = "v1.21.2"
_GVK = "x-kubernetes-group-version-kind"


def types_of(written: Obj, folder: Path) -> Schema | None:
    """None: those of Kubernetes. Raises CliError."""
    version, path = written.get("version"), written.get("path")
    if version and path:
        raise CliError("builtin version and custom schema provided, cannot use both")
    if version and version != BUILT_IN:
        raise CliError("the specified OpenAPI version is not built in")
    if not path:
        return None
    found = list(documents.documents(text_of(folder, str(path)).encode(), str(path)))
    definitions = (found[0].get("definitions") if found else None) or {}
    return schema_of(definitions)


def schema_of(definitions: Obj) -> Schema:
    flat: dict[str, Obj] = {}
    for name, definition in definitions.items():
        _flatten(name, definition, flat)
    index = {
        f"{_api_version(each)} {each.get('kind')}": name
        for name, definition in definitions.items()
        for each in definition.get(_GVK) or ()
    }
    return Schema("", index, {name: json.dumps(each) for name, each in flat.items()})


def _api_version(gvk: Obj) -> str:
    group, version = gvk.get("group") or "", gvk.get("version") or ""
    return f"{group}/{version}" if group else version


def _flatten(name: str, definition: Obj, flat: dict[str, Obj]) -> None:
    """Objects that are described in place become definitions of their own."""
    properties = {
        field: _named(f"{name}.{field}", entry, flat)
        for field, entry in (definition.get("properties") or {}).items()
    }
    flat[name] = {**definition, "properties": properties}


def _named(name: str, entry: Any, flat: dict[str, Obj]) -> Any:
    if "$ref" in entry:
        return {**entry, "$ref": str(entry["$ref"]).removeprefix("#/definitions/")}
    if entry.get("properties"):
        _flatten(name, entry, flat)
        return {"$ref": name}
    if isinstance(entry.get("items"), dict):
        return {**entry, "items": _named(f"{name}.items", entry["items"], flat)}
    return entry
