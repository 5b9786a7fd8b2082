"""ConfigMaps and Secrets that a kustomization makes of files and words.

Job: an entry → the object; how it comes to those that are there already.
"""

import base64
from collections.abc import Sequence
from pathlib import Path

from sampan.api.objects import Obj
from sampan.cli.create.data import secret_object
from sampan.cli.create.keys import Keys
from sampan.cli.errors import CliError
from sampan.cli.kustomize.loading import place_of
from sampan.cli.kustomize.resource import Resource

BEHAVIORS = ("create", "merge", "replace")


def generated(kind: str, entry: Obj, defaults: Obj, folder: Path) -> Resource:
    """Raises CliError."""
    if not entry.get("name"):
        raise CliError(f"{kind} generator: name is missing")
    own = entry.get("options") or {}
    resource = Resource(_object(kind, entry, _data(kind, entry, folder)))
    meta = resource.obj["metadata"]
    if entry.get("namespace"):
        meta["namespace"] = entry["namespace"]
    for name in ("labels", "annotations"):
        if both := {**(defaults.get(name) or {}), **(own.get(name) or {})}:
            meta[name] = both
    options = {**defaults, **own}
    if options.get("immutable"):
        resource.obj["immutable"] = True
    resource.needs_hash = not options.get("disableNameSuffixHash")
    if entry.get("behavior") in BEHAVIORS:  # as kustomize: what it does not know is nothing
        resource.behavior = entry["behavior"]
    return resource


def _data(kind: str, entry: Obj, folder: Path) -> dict[str, bytes]:
    keys = Keys(kind, entry["name"])
    keys.add_literals([_unquoted(str(text)) for text in entry.get("literals") or []])
    keys.add_files([_beside(folder, file) for file in entry.get("files") or []])
    envs = [*(entry.get("envs") or []), *([entry["env"]] if entry.get("env") else [])]
    keys.add_env_files([str(place_of(folder, env)) for env in envs], {})
    return keys.data


def absorb(resources: list[Resource], new: Resource) -> None:
    """Beside the others, or over the one that it is for. Raises CliError."""
    own = new.id
    found = [each for each in resources if any(one.is_same(own) for one in each.ids)]
    if len(found) > 1:
        raise CliError(f"found multiple objects that could accept merge of {own}")
    if not found:
        if new.behavior != "create":
            raise CliError(
                f"merging from generator: id {own} does not exist; cannot merge or replace"
            )
        resources.append(new)
        return
    old = found[0]
    if new.behavior == "create":
        raise CliError(
            f"merging from generator: id {own} exists; behavior must be merge or replace"
        )
    _take_over(new, old)
    resources[resources.index(old)] = new


def _take_over(new: Resource, old: Resource) -> None:
    meta, before = new.obj["metadata"], old.obj.get("metadata") or {}
    for name in ("labels", "annotations"):
        if both := {**(before.get(name) or {}), **(meta.get(name) or {})}:
            meta[name] = both
    for name in ("name", "namespace"):
        meta.pop(name, None)
        if name in before:
            meta[name] = before[name]
    if new.behavior == "merge":
        for name in ("data", "binaryData"):
            if both := {**(old.obj.get(name) or {}), **(new.obj.get(name) or {})}:
                new.obj[name] = both
    new.needs_hash = new.needs_hash and old.needs_hash
    new.previous, new.prefixes, new.suffixes = old.previous, old.prefixes, old.suffixes
    new.behavior, new.origin, new.changes = old.behavior, old.origin, old.changes


def _unquoted(literal: str) -> str:
    """Quotes around a whole value are none of it."""
    key, equals, value = literal.partition("=")
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return f"{key}{equals}{value}"


def _beside(folder: Path, source: str) -> str:
    key, equals, path = source.partition("=")
    return f"{key}={place_of(folder, path)}" if equals else str(place_of(folder, source))


def _object(kind: str, entry: Obj, data: dict[str, bytes]) -> Obj:
    if kind == "Secret":
        return secret_object(entry["name"], data, entry.get("type") or "Opaque")
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": entry["name"]},
        **_data_fields(data),
    }  # fmt: skip


def _data_fields(data: dict[str, bytes]) -> Obj:
    """What is no text is binary."""
    texts, binary = {}, {}
    for key, value in data.items():
        try:
            texts[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(value).decode()
    return {**({"data": texts} if texts else {}), **({"binaryData": binary} if binary else {})}


def kinds() -> Sequence[tuple[str, str]]:
    """(field of a kustomization, kind that it makes), in their order."""
    return (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret"))
