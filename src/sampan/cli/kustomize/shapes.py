"""What a kustomization may look like.

Job: fields → their types; say what is none of them in the words of Go's JSON.
Why: whatever reads it afterwards may rely on it.
"""

from collections.abc import Mapping
from typing import Any

from sampan.cli.errors import CliError

TEXT, NUMBER, TRUTH, ANY = "string", "int64", "bool", ""
TEXTS, TEXT_MAP = [TEXT], {"*": TEXT}
Shape = Any  # one of the words, a list of one shape, or a mapping of them ("*": every field)

_GVK = {"group": TEXT, "version": TEXT, "kind": TEXT}
_SPEC = {**_GVK, "path": TEXT, "create": TRUTH}
_TARGET = {
    **_GVK, "name": TEXT, "namespace": TEXT, "labelSelector": TEXT, "annotationSelector": TEXT,
}  # fmt: skip
_OPTIONS = {
    "labels": TEXT_MAP, "annotations": TEXT_MAP, "disableNameSuffixHash": TRUTH, "immutable": TRUTH,
}  # fmt: skip
_GENERATOR = {
    "name": TEXT, "namespace": TEXT, "behavior": TEXT, "literals": TEXTS, "files": TEXTS,
    "envs": TEXTS, "env": TEXT, "type": TEXT, "options": _OPTIONS,
}  # fmt: skip
_PATCH = {"path": TEXT, "patch": TEXT, "target": _TARGET, "options": {"*": TRUTH}}
_PART = {"delimiter": TEXT, "index": NUMBER, "create": TRUTH}
REPLACEMENT = {
    "path": TEXT, "sourceValue": TEXT, "source": {**_TARGET, "fieldPath": TEXT, "options": _PART},
    "targets": [{"select": _TARGET, "reject": [_TARGET], "fieldPaths": TEXTS, "options": _PART}],
}  # fmt: skip
_IMAGE = {"name": TEXT, "newName": TEXT, "newTag": TEXT, "digest": TEXT, "tagSuffix": TEXT}
_REPLICA = {"name": TEXT, "count": NUMBER}
_CHART = {
    "additionalValuesFiles": TEXTS, "apiVersions": TEXTS, "valuesInline": {"*": ANY},
    **dict.fromkeys(("name", "version", "repo", "releaseName", "namespace", "valuesFile",
                     "valuesMerge", "kubeVersion", "nameTemplate"), TEXT),
    **dict.fromkeys(("includeCRDs", "skipHooks", "skipTests", "debug", "devel"), TRUTH),
}  # fmt: skip
KUSTOMIZATION: Mapping[str, Shape] = {
    "apiVersion": TEXT, "kind": TEXT, "namespace": TEXT, "namePrefix": TEXT, "nameSuffix": TEXT,
    "resources": TEXTS, "bases": TEXTS, "components": TEXTS, "configurations": TEXTS,
    "generators": TEXTS, "transformers": TEXTS, "patchesStrategicMerge": TEXTS,
    "commonLabels": TEXT_MAP, "commonAnnotations": TEXT_MAP, "generatorOptions": _OPTIONS,
    "labels": [{"pairs": TEXT_MAP, "includeSelectors": TRUTH, "includeTemplates": TRUTH,
                "fields": [_SPEC]}],
    "configMapGenerator": [_GENERATOR], "secretGenerator": [_GENERATOR], "images": [_IMAGE],
    "replicas": [_REPLICA], "patches": [_PATCH], "patchesJson6902": [_PATCH],
    "replacements": [REPLACEMENT],
    "vars": [{"name": TEXT, "objref": {**_GVK, "apiVersion": TEXT, "name": TEXT, "namespace": TEXT},
              "fieldref": {"fieldPath": TEXT, "fieldpath": TEXT}}],
    "crds": TEXTS, "validators": TEXTS, "buildMetadata": TEXTS, "openapi": TEXT_MAP,
    "helmGlobals": {"chartHome": TEXT, "configHome": TEXT}, "helmCharts": [_CHART],
    "sortOptions": {"order": TEXT,
                    "legacySortOptions": {"orderFirst": TEXTS, "orderLast": TEXTS}},
}  # fmt: skip
# Of files of `configurations`; of those of `transformers` and `generators`.
CONFIGURATION: Mapping[str, Shape] = {
    "nameReference": [{**_GVK, "fieldSpecs": [_SPEC]}],
    **{section: [_SPEC] for section in (
        "namePrefix", "nameSuffix", "namespace", "commonLabels", "templateLabels", "labels",
        "commonAnnotations", "images", "replicas", "varReference")},
}  # fmt: skip
PLUGIN: Mapping[str, Shape] = {
    **_GENERATOR, **_PATCH, "apiVersion": TEXT, "kind": TEXT, "fieldSpecs": [_SPEC],
    "metadata": {"name": TEXT, "namespace": TEXT}, "unsetOnly": TRUTH,
    "setRoleBindingSubjects": TEXT, "prefix": TEXT, "suffix": TEXT, "labels": TEXT_MAP,
    "annotations": TEXT_MAP, "imageTag": _IMAGE, "replica": _REPLICA, "replacements": [REPLACEMENT],
    "options": {**_OPTIONS, "*": ANY},
}  # fmt: skip
OBJECT: Mapping[str, Shape] = {
    "metadata": {"labels": {"*": ANY}, "annotations": {"*": ANY}}, "items": [{"*": ANY}],
}  # fmt: skip
_KINDS = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
}


def check_shape(written: Any, shape: Shape, name: str) -> None:
    """`name`: of what is looked at. Raises CliError."""
    if written is None or shape == ANY:
        return
    if isinstance(shape, list):
        _expect(written, list, name, "[]")
        for item in written:
            if item is None:
                raise CliError(f"invalid Kustomization: {name}: an item is null")
            check_shape(item, shape[0], name)
    elif isinstance(shape, Mapping):
        _expect(written, dict, name, "map")
        for field, value in written.items():
            inner = shape.get(field, shape.get("*", ANY))
            check_shape(value, inner, name if "*" in shape else f"{name}.{field}")
    elif shape == TEXT:
        _expect(written, str, name, TEXT)
    elif shape == TRUTH:
        _expect(written, bool, name, TRUTH)
    elif isinstance(written, bool) or not isinstance(written, int):
        _refuse(written, name, NUMBER)


def _expect(written: Any, kind: type, name: str, told: str) -> None:
    if not isinstance(written, kind):
        _refuse(written, name, told)


def _refuse(written: Any, name: str, told: str) -> None:
    kind = _KINDS.get(type(written), "value")
    raise CliError(
        f"invalid Kustomization: json: cannot unmarshal {kind} into Go struct field {name} of type "
        f"{told}"
    )
