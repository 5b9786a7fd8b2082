"""Patches of a kustomization: strategic merge patches and JSON patches, by name or by target.

Job: read a patch, find what it is for, put it over that.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sampan.api.objects import Obj, annotations_of, labels_of
from sampan.api.rules.selectors import parse_label_selector
from sampan.cli.errors import CliError
from sampan.cli.kustomize.custom_types import TYPES
from sampan.cli.kustomize.loading import text_of
from sampan.cli.kustomize.resource import Resource, gvk_of
from sampan.cli.kustomize.shapes import ANY, OBJECT, check_shape
from sampan.cli.objects import documents

if TYPE_CHECKING:
    from sampan.api.schema.published import Schema


def patched(resources: list[Resource], entry: Obj, folder: Path) -> list[Resource]:
    """By an entry of `patches`: without what a patch has deleted. Raises CliError."""
    text, path = str(entry.get("patch") or "").strip(), entry.get("path")
    if bool(text) == bool(path):
        wrong = "patch and path can't be set at the same time" if text else (
            "must specify one of patch and path")  # fmt: skip
        raise CliError(f"{wrong} in {folder}")
    text = text or text_of(folder, str(path))
    found = _read(text, f"[path: {_quoted(str(path))}]" if path else f"[patch: {_quoted(text)}]")
    target, options = entry.get("target"), entry.get("options") or {}
    if found and isinstance(found[0], list):
        return _with_json_patch(resources, found[0], target, text)
    if target and len(found) > 1:
        raise CliError(
            "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set "
            "`patches.target` field"
        )
    for change in found:
        chosen = selected(resources, target) if target else [_named(resources, change)]
        for resource in chosen:
            _merge(resource, change, options, entry.get(TYPES))
    return [each for each in resources if each.obj]


def _read(text: str, source: str) -> list[Any]:
    """One list of operations, or objects."""
    try:
        if text.startswith("["):
            return [json.loads(text)]
        found = list(documents.documents(text.encode(), source, newer=True))
        if found and isinstance(found[0], list):  # operations are read as JSON would be
            found = list(documents.documents(text.encode(), source))
        for each in found:
            check_shape(each, [ANY] if isinstance(each, list) else OBJECT, source)
        return found
    except (ValueError, CliError) as error:
        raise CliError(f"unable to parse SM or JSON patch from {source}") from error


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _with_json_patch(
    resources: list[Resource], change: list[Any], target: Obj | None, text: str
) -> list[Resource]:
    from sampan.cli.objects.overrides import overridden_data

    if not target:
        raise CliError(f"must specify a target for JSON patch [patch: {_quoted(text)}]")
    for resource in selected(resources, target):
        resource.remember()
        resource.obj = overridden_data(resource.obj, change, "json")
    return resources


def selected(resources: Sequence[Resource], target: Obj) -> list[Resource]:
    """Whose original or present name it is; the words are patterns of whole words."""
    labels = parse_label_selector(target.get("labelSelector") or "")
    annotations = parse_label_selector(target.get("annotationSelector") or "")
    return [
        each
        for each in resources
        if _fits(target, "namespace", *_places(each))
        and _fits(target, "name", each.original_id.name, each.name)
        and _fits(target, "group", each.gvk.group)
        and _fits(target, "version", each.gvk.version)
        and _fits(target, "kind", each.gvk.kind)
        and labels.matches(labels_of(each.obj))
        and annotations.matches(annotations_of(each.obj))
    ]


def _places(resource: Resource) -> tuple[str, str]:
    return resource.original_id.effective_namespace, resource.id.effective_namespace


def _fits(target: Obj, field: str, *values: str) -> bool:
    pattern = target.get(field)
    if not pattern:
        return True
    try:
        return any(re.fullmatch(str(pattern), value) for value in values)
    except re.error as error:
        raise CliError(f"target.{field}: {pattern!r}: {error}") from error


def _named(resources: Sequence[Resource], change: Obj) -> Resource:
    wanted = Resource(change).id
    found = [each for each in resources if any(one.is_same(wanted) for one in each.ids)]
    if len(found) == 1:
        return found[0]
    why = "no matches for" if not found else "multiple matches for"
    ids = "" if not found else f"; {', '.join(str(each.id) for each in found)}"
    raise CliError(
        f'no resource matches strategic merge patch "{wanted}": {why} Id {wanted}{ids}; failed to '
        f"find unique target for patch {wanted}"
    )


def _merge(resource: Resource, change: Obj, options: Obj, types: "Schema | None") -> None:
    if change.get("$patch") == "delete":
        resource.obj = {}
        return
    from sampan.cli.kustomize.strategic_merge import merged

    kept, meta = resource.obj, resource.obj.get("metadata") or {}
    if options.get("allowNameChange") or options.get("allowKindChange"):
        resource.remember()
    found = merged(kept, change, gvk_of(kept), types)
    own = found.setdefault("metadata", {})
    if not options.get("allowNameChange"):
        own["name"] = meta.get("name")
    if not options.get("allowKindChange"):
        found["kind"] = kept["kind"]
        found["apiVersion"] = kept["apiVersion"]
    own.pop("namespace", None)
    if "namespace" in meta:
        own["namespace"] = meta["namespace"]
    resource.obj = found
