"""Kustomizations: the part of kustomize that most of them use.

Job: read a kustomization and what it names, change and generate objects, in kustomize's order.
Invariant: a field that is not done here is refused by name, never left out in silence.
"""

import os
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj, copy_of, labels_of
from sampan.api.rules.selectors import parse_label_selector
from sampan.cli.create.data import secret_object
from sampan.cli.create.hashing import suffix
from sampan.cli.create.keys import Keys
from sampan.cli.errors import CliError
from sampan.cli.objects import documents

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
KNOWN = {
    "apiVersion", "kind", "metadata", "resources", "bases", "namePrefix", "nameSuffix", "namespace",
    "commonLabels", "labels", "commonAnnotations", "configMapGenerator", "secretGenerator",
    "generatorOptions", "images", "replicas", "patches", "patchesStrategicMerge", "patchesJson6902",
}  # fmt: skip
CLUSTER_WIDE = {
    "Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "StorageClass",
    "PriorityClass", "IngressClass", "CustomResourceDefinition", "APIService",
}  # fmt: skip
# Where objects name others: (field path inside any object, kind that is named).
REFERENCES = (
    (("configMap", "name"), "ConfigMap"), (("configMapRef", "name"), "ConfigMap"),
    (("configMapKeyRef", "name"), "ConfigMap"), (("secretRef", "name"), "Secret"),
    (("secretKeyRef", "name"), "Secret"), (("secret", "secretName"), "Secret"),
    (("secret", "name"), "Secret"), (("persistentVolumeClaim", "claimName"), "PersistentVolumeClaim"),
    (("service", "name"), "Service"),
)  # fmt: skip


def build(folder: str) -> list[Obj]:
    if not os.path.isdir(folder):
        raise CliError(
            f"must build at directory: not a valid directory: evalsymlink failure on '{folder}' : "
            f"lstat {folder}: no such file or directory"
        )
    found = [name for name in NAMES if (Path(folder) / name).is_file()]
    if not found:
        raise CliError(
            "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' "
            f"in directory '{folder}'"
        )
    path = Path(folder) / found[0]
    found_documents = list(documents.documents(path.read_bytes(), str(path)))
    config: Obj = found_documents[0] if found_documents else {}
    unknown = sorted(set(config) - KNOWN)
    if unknown:
        raise CliError(f"{path}: kustomization field(s) not supported: {', '.join(unknown)}")
    objects = _resources(Path(folder), config)
    objects += _generate(Path(folder), config)
    for patch in _patches(Path(folder), config):
        objects = [_patch(obj, patch) for obj in objects]
    return [_transform(obj, config) for obj in _rename(objects, config)]


def _resources(folder: Path, config: Obj) -> list[Obj]:
    objects: list[Obj] = []
    for name in [*(config.get("resources") or []), *(config.get("bases") or [])]:
        path = folder / name
        if path.is_dir():
            objects += build(str(path))
        elif path.is_file():
            objects += [
                copy_of(document) for document in documents.documents(path.read_bytes(), str(path))
            ]
        else:
            raise CliError(f"accumulating resources: '{name}' doesn't exist in {folder}")
    return objects


def _generate(folder: Path, config: Obj) -> list[Obj]:
    objects = []
    defaults = config.get("generatorOptions") or {}
    for kind, field in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
        for entry in config.get(field) or []:
            options = {**defaults, **(entry.get("options") or {})}
            keys = Keys(kind, entry["name"])
            keys.add_literals(entry.get("literals") or [])
            keys.add_files([_beside(folder, file) for file in entry.get("files") or []])
            envs = [*(entry.get("envs") or []), *([entry["env"]] if entry.get("env") else [])]
            keys.add_env_files([str(folder / env) for env in envs], {})
            obj = _data_object(kind, entry, keys.data)
            for name in ("labels", "annotations"):
                if options.get(name):
                    obj["metadata"][name] = dict(options[name])
            if not options.get("disableNameSuffixHash"):
                obj["metadata"]["_hash"] = True
            objects.append(obj)
    return objects


def _beside(folder: Path, source: str) -> str:
    key, equals, path = source.partition("=")
    return f"{key}={folder / path}" if equals else str(folder / source)


def _data_object(kind: str, entry: Obj, data: dict[str, bytes]) -> Obj:
    if kind == "Secret":
        return secret_object(entry["name"], data, entry.get("type") or "Opaque")
    text = {key: value.decode(errors="replace") for key, value in data.items()}
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": entry["name"]}}
    if text:
        obj["data"] = text
    return obj


def _rename(objects: list[Obj], config: Obj) -> list[Obj]:
    """Prefix, suffix and hash on names, and on what names them."""
    before, after = config.get("namePrefix") or "", config.get("nameSuffix") or ""
    names: dict[tuple[str, str], str] = {}
    out = []
    for obj in objects:
        meta = dict(obj["metadata"])
        hashed = meta.pop("_hash", False)
        old = meta["name"]
        keep = obj["kind"] in ("CustomResourceDefinition", "Namespace", "APIService")
        meta["name"] = old if keep else f"{before}{old}{after}"
        if hashed:
            # As kustomize: the hash is of the content alone, whatever the name.
            meta["name"] += "-" + suffix({**obj, "metadata": {"name": ""}})
        names[obj["kind"], old] = meta["name"]
        out.append({**obj, "metadata": meta})
    return [_with_references(obj, names) for obj in out]


def _with_references(value: Any, names: dict[tuple[str, str], str]) -> Any:
    if isinstance(value, list):
        return [_with_references(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    out = {key: _with_references(item, names) for key, item in value.items()}
    for (holder, field), kind in REFERENCES:
        inner = out.get(holder)
        if isinstance(inner, dict) and (kind, inner.get(field)) in names:
            out[holder] = {**inner, field: names[kind, inner[field]]}
    if ("ServiceAccount", out.get("serviceAccountName")) in names:
        out["serviceAccountName"] = names["ServiceAccount", out["serviceAccountName"]]
    return out


def _transform(obj: Obj, config: Obj) -> Obj:
    obj = copy_of(obj)
    meta = obj["metadata"]
    if config.get("namespace") and obj["kind"] not in CLUSTER_WIDE:
        meta["namespace"] = config["namespace"]
    if config.get("commonLabels"):
        _add_labels(obj, config["commonLabels"], selectors=True, templates=True)
    for entry in config.get("labels") or []:
        _add_labels(
            obj, entry.get("pairs") or {}, selectors=bool(entry.get("includeSelectors")),
            templates=bool(entry.get("includeSelectors") or entry.get("includeTemplates")),
        )  # fmt: skip
    if config.get("commonAnnotations"):
        _add_annotations(obj, config["commonAnnotations"])
    for entry in config.get("images") or []:
        _set_image(obj, entry)
    for entry in config.get("replicas") or []:
        if meta["name"].endswith(entry["name"]) and "replicas" in (obj.get("spec") or {}):
            obj["spec"]["replicas"] = entry["count"]
    return obj


def _add_annotations(obj: Obj, annotations: dict[str, str]) -> None:
    meta = obj["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    template = (obj.get("spec") or {}).get("template")
    if isinstance(template, dict):
        own = template.setdefault("metadata", {})
        own["annotations"] = {**(own.get("annotations") or {}), **annotations}


def _add_labels(obj: Obj, labels: dict[str, str], *, selectors: bool, templates: bool) -> None:
    meta = obj["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), **labels}
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if templates and isinstance(spec.get("template"), dict):
        own = spec["template"].setdefault("metadata", {})
        own["labels"] = {**(own.get("labels") or {}), **labels}
    if selectors and obj["kind"] == "Service":
        if spec.get("selector"):
            spec["selector"] = {**spec["selector"], **labels}
    elif selectors and isinstance(spec.get("selector"), dict) and "template" in spec:
        selector = spec["selector"]
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **labels}


def _set_image(value: Any, entry: Obj) -> None:
    if isinstance(value, list):
        for item in value:
            _set_image(item, entry)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("containers", "initContainers") and isinstance(item, list):
                for container in item:
                    container["image"] = _image(str(container.get("image") or ""), entry)
            else:
                _set_image(item, entry)


def _image(image: str, entry: Obj) -> str:
    name = image.partition("@")[0]
    if ":" in name.rpartition("/")[2]:
        name = name.rpartition(":")[0]
    if name != entry["name"]:
        return image
    rest = image[len(name) :]
    name = entry.get("newName") or name
    if entry.get("digest"):
        return f"{name}@{entry['digest']}"
    return f"{name}:{entry['newTag']}" if entry.get("newTag") else name + rest


def _patches(folder: Path, config: Obj) -> list[tuple[Any, Obj]]:
    """(patch, target) in order."""
    found: list[tuple[Any, Obj]] = []
    for entry in config.get("patches") or []:
        text = entry.get("patch") or (folder / entry["path"]).read_text()
        for document in documents.documents(text.encode(), "patch"):
            found.append((document, entry.get("target") or {}))
    for entry in config.get("patchesStrategicMerge") or []:
        text = entry if "\n" in entry else (folder / entry).read_text()
        found += [(document, {}) for document in documents.documents(text.encode(), "patch")]
    for entry in config.get("patchesJson6902") or []:
        text = entry.get("patch") or (folder / entry["path"]).read_text()
        found += [
            (document, entry["target"]) for document in documents.documents(text.encode(), "patch")
        ]
    return found


def _patch(obj: Obj, patch: tuple[Any, Obj]) -> Obj:
    from sampan.cli.objects.overrides import overridden_data

    change, target = patch
    if isinstance(change, list):
        return overridden_data(obj, change, "json") if _hits(obj, target) else obj
    own = target or {
        "kind": change.get("kind"), "name": (change.get("metadata") or {}).get("name")
    }  # fmt: skip
    if not _hits(obj, own):
        return obj
    body = {key: value for key, value in change.items() if key not in ("apiVersion", "kind")}
    meta = {k: v for k, v in (body.get("metadata") or {}).items() if k not in ("name", "namespace")}
    body = (
        {**body, "metadata": meta} if meta else {k: v for k, v in body.items() if k != "metadata"}
    )
    return overridden_data(obj, body, "strategic")


def _hits(obj: Obj, target: Obj) -> bool:
    import re

    for field, own in (("kind", obj["kind"]), ("name", obj["metadata"]["name"])):
        if target.get(field) and not re.fullmatch(str(target[field]), own):
            return False
    if target.get("labelSelector"):
        return bool(parse_label_selector(target["labelSelector"]).matches(labels_of(obj)))
    return True
