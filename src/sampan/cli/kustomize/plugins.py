"""Kustomize's built-in transformers and generators, by their kinds.

Job: what the fields of a kustomization ask for, in the order in which it is done; the same, where
    a file of `transformers` or `generators` configures one.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.kustomize import replacements, transformers
from sampan.cli.kustomize.field_paths import FieldSpec
from sampan.cli.kustomize.field_specs import FieldSpecs, spec_of
from sampan.cli.kustomize.generators import generated
from sampan.cli.kustomize.loading import text_of
from sampan.cli.kustomize.patches import patched
from sampan.cli.kustomize.resource import Resource
from sampan.cli.kustomize.shapes import REPLACEMENT, check_shape
from sampan.cli.objects import documents

BUILTIN = "builtin"
_METADATA_LABELS = FieldSpec("metadata/labels", create=True)
Specs = Sequence[FieldSpec]


def of_fields(config: Obj, specs: FieldSpecs) -> Iterator[tuple[str, Obj]]:
    """(kind of transformer, its settings)."""
    for entry in config.get("patchesStrategicMerge") or []:
        yield "PatchTransformer", {"patch" if "\n" in entry else "path": entry}
    for entry in config.get("patches") or []:
        yield "PatchTransformer", entry
    yield from _of_names_and_labels(config, specs)
    for entry in config.get("patchesJson6902") or []:
        yield "PatchTransformer", entry
    for entry in config.get("replicas") or []:
        yield "ReplicaCountTransformer", {"replica": entry, "fieldSpecs": specs.of("replicas")}
    for entry in config.get("images") or []:
        yield "ImageTagTransformer", {"imageTag": entry, "fieldSpecs": specs.of("images")}
    if config.get("replacements"):
        yield "ReplacementTransformer", {"replacements": config["replacements"]}


def _of_names_and_labels(config: Obj, specs: FieldSpecs) -> Iterator[tuple[str, Obj]]:
    if config.get("namespace"):
        settings: Obj = {"metadata": {"namespace": config["namespace"]}}
        yield "NamespaceTransformer", {**settings, "fieldSpecs": specs.of("namespace")}
    for field, kind in (("namePrefix", "Prefix"), ("nameSuffix", "Suffix")):
        if config.get(field):
            settings = {kind.lower(): config[field], "fieldSpecs": specs.of(field)}
            yield f"{kind}Transformer", settings
    for entry in config.get("labels") or []:
        pairs = entry.get("pairs") or {}
        yield "LabelTransformer", {"labels": pairs, "fieldSpecs": _of_labels(entry, specs)}
    for field, kind in (("commonLabels", "Label"), ("commonAnnotations", "Annotations")):
        # Where there are labels, common ones are looked for, too: it shows in buildMetadata.
        if config.get(field) or (kind == "Label" and config.get("labels")):
            name = "labels" if kind == "Label" else "annotations"
            settings = {name: config.get(field) or {}, "fieldSpecs": specs.of(field)}
            yield f"{kind}Transformer", settings


def _of_labels(entry: Obj, specs: FieldSpecs) -> list[FieldSpec]:
    found = [*(spec_of(one) for one in entry.get("fields") or ()), *specs.of("labels")]
    if entry.get("includeSelectors"):
        return [*found, *specs.of("commonLabels")]
    templates = specs.of("templateLabels") if entry.get("includeTemplates") else ()
    return [*found, *templates, _METADATA_LABELS]


def check(document: Obj) -> None:
    """Raises CliError where it is none of kustomize's own."""
    kind = str(document.get("kind") or "")
    if document.get("apiVersion") != BUILTIN or kind not in _TRANSFORMERS:
        raise CliError(f"external plugins disabled; unable to load external plugin '{kind}'")


def generate(document: Obj, folder: Path) -> Resource:
    """Raises CliError."""
    kind = str(document.get("kind") or "").removesuffix("Generator")
    if document.get("apiVersion") != BUILTIN or kind not in ("ConfigMap", "Secret"):
        what = document.get("kind")
        raise CliError(f"external plugins disabled; unable to load external plugin '{what}'")
    meta = document.get("metadata") or {}
    entry = {**document, "name": meta.get("name"), "namespace": meta.get("namespace")}
    return generated(kind, entry, {}, folder)


def transformed(
    resources: list[Resource], kind: str, settings: Obj, folder: Path
) -> list[Resource]:
    """Raises CliError."""
    specs = [
        one if isinstance(one, FieldSpec) else spec_of(one)
        for one in settings.get("fieldSpecs") or ()
    ]
    return _TRANSFORMERS[kind](resources, settings, specs, folder)


def _namespace(found: list[Resource], settings: Obj, specs: Specs, _at: Path) -> list[Resource]:
    namespace = (settings.get("metadata") or {}).get("namespace") or ""
    subjects = str(settings.get("setRoleBindingSubjects") or "")
    if namespace:
        transformers.set_namespace(
            found, namespace, specs, subjects, unset_only=bool(settings.get("unsetOnly"))
        )
    return found


def _prefix(found: list[Resource], settings: Obj, specs: Specs, _at: Path) -> list[Resource]:
    transformers.add_prefix(found, str(settings.get("prefix") or ""), specs)
    return found


def _suffix(found: list[Resource], settings: Obj, specs: Specs, _at: Path) -> list[Resource]:
    transformers.add_suffix(found, str(settings.get("suffix") or ""), specs)
    return found


def _labels(found: list[Resource], settings: Obj, specs: Specs, _at: Path) -> list[Resource]:
    transformers.add_pairs(found, settings.get("labels") or {}, specs)
    return found


def _annotations(found: list[Resource], settings: Obj, specs: Specs, _at: Path) -> list[Resource]:
    transformers.add_pairs(found, settings.get("annotations") or {}, specs)
    return found


def _replicas(found: list[Resource], settings: Obj, specs: Specs, _at: Path) -> list[Resource]:
    transformers.set_replicas(found, settings.get("replica") or {}, specs)
    return found


def _image(found: list[Resource], settings: Obj, specs: Specs, _at: Path) -> list[Resource]:
    transformers.set_image(found, settings.get("imageTag") or {}, specs)
    return found


def _patch(found: list[Resource], settings: Obj, _specs: Specs, at: Path) -> list[Resource]:
    return patched(found, settings, at)


def _replacements(found: list[Resource], settings: Obj, _specs: Specs, at: Path) -> list[Resource]:
    for entry in settings.get("replacements") or []:
        for replacement in _written_elsewhere(entry["path"], at) if "path" in entry else [entry]:
            check_shape(replacement, REPLACEMENT, "Replacement")
            replacements.replace(found, replacement or {})
    return found


def _written_elsewhere(path: str, folder: Path) -> Iterator[Any]:
    """A file has one replacement, or a list of them."""
    for document in documents.documents(text_of(folder, path).encode(), path, newer=True):
        yield from document if isinstance(document, list) else [document]


_TRANSFORMERS: dict[str, Callable[[list[Resource], Obj, Specs, Path], list[Resource]]] = {
    "NamespaceTransformer": _namespace,
    "PrefixTransformer": _prefix,
    "SuffixTransformer": _suffix,
    "LabelTransformer": _labels,
    "AnnotationsTransformer": _annotations,
    "ReplicaCountTransformer": _replicas,
    "ImageTagTransformer": _image,
    "PatchTransformer": _patch,
    "ReplacementTransformer": _replacements,
}
