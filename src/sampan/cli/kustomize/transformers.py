"""What a kustomization changes in all of its objects: names, namespaces, labels, images, numbers.

Job: one function for each of kustomize's transformers, by field specs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.kustomize.field_paths import Change, FieldSpec, change_at
from sampan.cli.kustomize.resource import Gvk, Resource

_NAMESPACE, _NAME = "metadata/namespace", "metadata/name"
_KEEP_THEIR_NAMES = (
    Gvk(kind="CustomResourceDefinition"), Gvk("apiregistration.k8s.io", "", "APIService"),
    Gvk(kind="Namespace"),
)  # fmt: skip
_CONTAINERS = ("containers", "initContainers")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
SUBJECTS = ("defaultOnly", "allServiceAccounts", "none")


def set_namespace(
    resources: Sequence[Resource],
    namespace: str,
    specs: Sequence[FieldSpec],
    subjects: str = "",
    *,
    unset_only: bool = False,
) -> None:
    """`subjects`: those of bindings that are in it, too. Raises CliError."""
    if subjects not in ("", *SUBJECTS):
        choices = ", ".join(f'"{word}"' for word in SUBJECTS[:-1])
        raise CliError(
            f'invalid value "{subjects}" for setRoleBindingSubjects: must be one of {choices} or '
            f'"{SUBJECTS[-1]}"'
        )

    def written(old: Any) -> Any:
        return old if unset_only and old else namespace

    for resource in resources:
        resource.remember()
        obj = resource.obj
        if not resource.id.is_cluster_scoped:
            meta = obj.setdefault("metadata", {})
            meta["namespace"] = written(meta.get("namespace"))
        if resource.gvk.kind in _BINDINGS:
            _set_subjects(obj, subjects, written)
        for spec in specs:
            if spec.meets(resource.gvk) and not _is_elsewhere(spec, resource):
                change_at(obj, spec, written, str)
    _refuse_twins(resources)


def _is_elsewhere(spec: FieldSpec, resource: Resource) -> bool:
    """What is done by itself, or is not meant."""
    if spec.path == _NAMESPACE:
        return True
    if spec.path == _NAME and resource.obj.get("apiVersion") != "v1":
        return True
    return resource.gvk.kind in _BINDINGS and spec.path == "subjects/namespace"


def _set_subjects(obj: Obj, mode: str, written: Change) -> None:
    for subject in obj.get("subjects") or []:
        by_name = mode in ("", "defaultOnly") and subject.get("name") == "default"
        by_kind = mode == "allServiceAccounts" and subject.get("kind") == "ServiceAccount"
        if by_name or by_kind:
            subject["namespace"] = written(subject.get("namespace"))


def _refuse_twins(resources: Sequence[Resource]) -> None:
    for number, resource in enumerate(resources):
        own = resource.id
        if any(own.is_same(other.id) for other in resources[:number]):
            twins = [str(each.id) for each in resources if own.is_same(each.id)]
            raise CliError(f"namespace transformation produces ID conflict: [{' '.join(twins)}]")


def add_prefix(resources: Sequence[Resource], prefix: str, specs: Sequence[FieldSpec]) -> None:
    _add_to_names(resources, specs, prefix, "")


def add_suffix(resources: Sequence[Resource], suffix: str, specs: Sequence[FieldSpec]) -> None:
    _add_to_names(resources, specs, "", suffix)


def _add_to_names(
    resources: Sequence[Resource], specs: Sequence[FieldSpec], prefix: str, suffix: str
) -> None:
    for resource in resources:
        gvk = resource.original_id.gvk
        if any(gvk.is_selected_by(kept) for kept in _KEEP_THEIR_NAMES):
            continue
        for spec in specs:
            if not spec.meets(gvk):
                continue
            if spec.path == _NAME:
                resource.remember()
                resource.prefixes += [prefix] if prefix else []
                resource.suffixes += [suffix] if suffix else []
            change_at(resource.obj, spec, lambda old: f"{prefix}{old}{suffix}", str)


def add_pairs(
    resources: Sequence[Resource], pairs: Mapping[str, str], specs: Sequence[FieldSpec]
) -> None:
    """Labels or annotations."""
    for resource in resources:
        for spec in specs:
            if spec.meets(resource.gvk):
                change_at(resource.obj, spec, lambda old: {**(old or {}), **pairs}, dict)


def set_replicas(resources: Sequence[Resource], entry: Obj, specs: Sequence[FieldSpec]) -> None:
    """Raises CliError where nothing has that name."""
    found = False
    for spec in specs:
        for resource in resources:
            if any(one.name == entry.get("name") and spec.meets(one.gvk) for one in resource.ids):
                found = True
                if spec.meets(resource.gvk):
                    change_at(resource.obj, spec, lambda _old: entry.get("count") or 0, int)
    if not found:
        kinds = " ".join(_kind_text(spec.gvk) for spec in specs)
        raise CliError(
            f"resource with name {entry.get('name') or ''} does not match a config with the following GVK "
            f"[{kinds}]"
        )


def _kind_text(gvk: Gvk) -> str:
    return f"{gvk.kind or '[noKind]'}.{gvk.version or '[noVer]'}.{gvk.group or '[noGrp]'}"


def set_image(resources: Sequence[Resource], entry: Obj, specs: Sequence[FieldSpec]) -> None:
    for resource in resources:
        if resource.gvk.kind == "CustomResourceDefinition":
            continue
        _set_in_containers(resource.obj, entry)
        for spec in specs:
            if spec.meets(resource.gvk):
                change_at(resource.obj, spec, lambda old: _image(str(old or ""), entry))


def _set_in_containers(value: Any, entry: Obj) -> None:
    """Wherever they are, in an object of any kind: so it was before there were specs, and both are
    done."""
    if isinstance(value, list):
        for item in value:
            _set_in_containers(item, entry)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        _set_in_containers(item, entry)
        for container in item if key in _CONTAINERS and isinstance(item, list) else ():
            if isinstance(container, dict) and "image" in container:
                container["image"] = _image(str(container["image"] or ""), entry)


def _image(image: str, entry: Obj) -> str:
    name, tag, digest = _split_image(image)
    if name != entry.get("name"):
        return image
    name = entry.get("newName") or name
    new_tag, new_digest = _word(entry.get("newTag")), _word(entry.get("digest"))
    if new_tag or new_digest:
        tag, digest = new_tag, new_digest
    elif entry.get("tagSuffix"):
        tag, digest = f"{tag}{entry['tagSuffix']}", ""
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def _word(value: Any) -> str:
    return "" if value is None else str(value)


def _split_image(image: str) -> tuple[str, str, str]:
    name, _, digest = image.partition("@")
    if ":" in name.rpartition("/")[2]:
        name, _, tag = name.rpartition(":")
        return name, tag, digest
    return name, "", digest
