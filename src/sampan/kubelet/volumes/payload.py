"""The files of a volume that is made from API objects. Pure.

Job: configMap, secret, downwardAPI and projected → path, content and mode of each file.
Invariant: no path leads out of the volume: none is absolute, has a `..` or starts with `..`.
Invariant: what is missing and not optional is a VolumeFailure with upstream's words.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping

from sampan.api.objects import Obj, name_of, spec_of
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.container_spec.environment import (
    ConfigError,
    Surroundings,
    field_value,
    resource_value,
)
from sampan.kubelet.container_spec.security_context import effective
from sampan.kubelet.contracts.spec import find_container, with_roles
from sampan.kubelet.contracts.volumes_hook import Objects, VolumeFailure
from sampan.kubelet.volumes.references import CONFIG_MAP, SECRET, kind_of

DEFAULT_MODE = 0o644
TOKEN_MODE = 0o600  # only its owner, where one is known; a fsGroup adds to it
_MISSING_KEY = {
    CONFIG_MAP: "configmap references non-existent config key: ",
    SECRET: "references non-existent secret key: ",
}


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int
    owner: int | None = None


Token = Callable[[Obj], str]  # a serviceAccountToken projection → the token
Payload = Mapping[str, File]
API_DATA = ("configMap", "secret", "downwardAPI", "projected")


def payload_of(
    volume: Obj, pod: Obj, objects: Objects, around: Surroundings, token: Token
) -> Payload:
    kind = kind_of(volume)
    source: Obj = volume[kind] or {}
    mode = source.get("defaultMode")
    mode = DEFAULT_MODE if mode is None else mode
    if kind == "configMap":
        files = _files_by_key(CONFIG_MAP, source.get("name", ""), source, mode, objects)
    elif kind == "secret":
        files = _files_by_key(SECRET, source.get("secretName", ""), source, mode, objects)
    elif kind == "downwardAPI":
        files = _downward(source, mode, pod, around)
    else:
        assert kind == "projected", kind
        files = _projected_files(source, mode, pod, objects, around, token)
    _refuse_escapes(files)
    return files


def _projected_files(
    source: Obj, mode: int, pod: Obj, objects: Objects, around: Surroundings, token: Token
) -> dict[str, File]:
    files: dict[str, File] = {}
    faults: list[str] = []
    for item in source.get("sources") or ():
        try:
            files.update(_projection(item, mode, pod, objects, around, token))
        except VolumeFailure as fault:
            faults.append(str(fault))
    if faults:
        raise VolumeFailure(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return files


def _projection(
    source: Obj, mode: int, pod: Obj, objects: Objects, around: Surroundings, token: Token
) -> dict[str, File]:
    if part := source.get("configMap"):
        return _files_by_key(CONFIG_MAP, part.get("name", ""), part, mode, objects)
    if part := source.get("secret"):
        return _files_by_key(SECRET, part.get("name", ""), part, mode, objects)
    if part := source.get("downwardAPI"):
        return _downward(part, mode, pod, around)
    if part := source.get("serviceAccountToken"):
        owner = only_user(pod)
        guarded = owner is not None or group_of(pod) is not None
        data = token(part).encode()
        return {part.get("path", ""): File(data, TOKEN_MODE if guarded else mode, owner)}
    unknown = next((key for key in source if source[key] is not None), "nothing")
    raise VolumeFailure(f"projected sources of type {unknown} are not supported by this node yet")


def _files_by_key(
    kind: str, name: str, source: Obj, mode: int, objects: Objects
) -> dict[str, File]:
    """All keys, or those that `items` names."""
    found, optional = objects.get((kind, name)), bool(source.get("optional"))
    if found is None:
        if optional:
            return {}
        raise VolumeFailure(f'{kind.lower()} "{name}" not found')
    data = _data(kind, found)
    items = source.get("items")
    if not items:
        return {key: File(value, mode) for key, value in data.items()}
    files = {}
    for item in items:
        key = item.get("key", "")
        if key in data:
            own = item.get("mode")
            files[item.get("path", "")] = File(data[key], mode if own is None else own)
        elif not optional:
            raise VolumeFailure(f"{_MISSING_KEY[kind]}{key}")
    return files


def _data(kind: str, found: Obj) -> dict[str, bytes]:
    plain, encoded = found.get("data") or {}, found.get("binaryData") or {}
    if kind == SECRET:
        plain, encoded = {}, plain
    try:
        return {key: value.encode() for key, value in plain.items()} | {
            key: base64.b64decode(value or "") for key, value in encoded.items()
        }
    except binascii.Error as error:
        raise VolumeFailure(f"{kind.lower()} {name_of(found)} is damaged: {error}") from error


def _downward(source: Obj, mode: int, pod: Obj, around: Surroundings) -> dict[str, File]:
    files = {}
    for item in source.get("items") or ():
        own = item.get("mode")
        try:
            text = _downward_text(item, pod, around)
        except ConfigError as error:
            raise VolumeFailure(str(error)) from error
        files[item.get("path", "")] = File(text.encode(), mode if own is None else own)
    return files


def _downward_text(item: Obj, pod: Obj, around: Surroundings) -> str:
    if item.get("fieldRef"):
        return field_value(pod, item["fieldRef"].get("fieldPath", ""), around)
    selector = item.get("resourceFieldRef") or {}
    found = find_container(pod, selector.get("containerName", ""))
    if found is None:
        raise ConfigError(f"container {selector.get('containerName', '')} not found")
    return resource_value(pod, found[1], selector, around)


def _refuse_escapes(paths: Iterable[str]) -> None:
    """The API refuses them too; this is for pods that come by another way."""
    for path in paths:
        parts = path.split("/")
        if not path or path.startswith(("/", "..")) or ".." in parts or "\0" in path:
            raise VolumeFailure(f"invalid path {path!r}: it must stay inside of its volume")


def group_of(pod: Obj) -> int | None:
    group: int | None = (spec_of(pod).get("securityContext") or {}).get("fsGroup")
    return group


def only_user(pod: Obj) -> int | None:
    """As upstream's FsUserFrom: the user of all containers, where they say so and agree."""
    users = {effective(pod, container).get("runAsUser") for _, container in with_roles(pod)}
    user: int | None = users.pop() if len(users) == 1 else None
    return user
