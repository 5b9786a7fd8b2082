"""The files of a volume that is made from API objects. Pure.

Job: configMap, secret, downwardAPI and projected → path, content and mode of each file.
Invariant: no path leads out of the volume: none is absolute, has a `..` or starts with `..`.
Invariant: what is missing and not optional is a VolumeFailure with upstream's words.
Invariant: what the volumes of a pod show is bounded in sum: each of a thousand items may be the
    same megabyte.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping

from sampan.api.objects import Obj, name_of, spec_of
from sampan.client.by_identity import OF_ANY_SIZE, by_identity
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.container_spec.environment import (
    ConfigError,
    Surroundings,
    field_value,
    resource_value,
)
from sampan.kubelet.container_spec.security_context import effective
from sampan.kubelet.contracts.room import Room
from sampan.kubelet.contracts.spec import find_container, with_roles
from sampan.kubelet.contracts.volumes_hook import Objects, VolumeFailure
from sampan.kubelet.volumes.references import CONFIG_MAP, SECRET, kind_of

DEFAULT_MODE = 0o644
MOST_BYTES = 64 << 20
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


@dataclass(frozen=True, slots=True)
class Credentials:
    """Of a podCertificate projection."""

    key: bytes
    chain: bytes


Token = Callable[[Obj], str]  # a serviceAccountToken projection → the token
Place = tuple[str, int]  # volume, and which of its projected sources
# What certificate sources show: trust anchors, credentials, or why there are none.
CertificateSources = Mapping[Place, bytes | Credentials | str]
Payload = Mapping[str, File]
API_DATA = ("configMap", "secret", "downwardAPI", "projected")


@dataclass(frozen=True, slots=True)
class Sources:
    """What the files of a pod's volumes are made from; there is room for them in sum."""

    pod: Obj
    objects: Objects
    around: Surroundings
    token: Token
    room: Room
    certificates: CertificateSources | None = None  # None: they are not asked for yet


def payload_room() -> Room:
    """For all volumes of one pod."""
    why = f"files of API objects in the volumes of the pod have more than {MOST_BYTES} bytes"
    return Room(MOST_BYTES, lambda: VolumeFailure(why))


def payload_of(volume: Obj, sources: Sources) -> Payload:
    kind = kind_of(volume)
    source: Obj = volume[kind] or {}
    mode = source.get("defaultMode")
    mode = DEFAULT_MODE if mode is None else mode
    if kind == "configMap":
        files = _files_by_key(CONFIG_MAP, source.get("name", ""), source, mode, sources)
    elif kind == "secret":
        files = _files_by_key(SECRET, source.get("secretName", ""), source, mode, sources)
    elif kind == "downwardAPI":
        files = _downward(source, mode, sources)
    else:
        assert kind == "projected", kind
        files = _projected_files(volume, mode, sources)
    _refuse_escapes(files)
    return files


def _projected_files(volume: Obj, mode: int, sources: Sources) -> dict[str, File]:
    files: dict[str, File] = {}
    faults: list[str] = []
    for index, item in enumerate((volume["projected"] or {}).get("sources") or ()):
        place = (volume.get("name", ""), index)
        try:
            files.update(_projection(item, place, mode, sources))
        except VolumeFailure as fault:
            if sources.room.is_full:
                raise
            faults.append(str(fault))
    if faults:
        raise VolumeFailure(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return files


def _projection(source: Obj, place: Place, mode: int, sources: Sources) -> dict[str, File]:
    if part := source.get("configMap"):
        return _files_by_key(CONFIG_MAP, part.get("name", ""), part, mode, sources)
    if part := source.get("secret"):
        return _files_by_key(SECRET, part.get("name", ""), part, mode, sources)
    if part := source.get("downwardAPI"):
        return _downward(part, mode, sources)
    if part := source.get("serviceAccountToken"):
        guarded = _guarded(mode, sources.pod)
        return {part.get("path", ""): guarded(sources.token(part).encode())}
    if part := source.get("clusterTrustBundle") or source.get("podCertificate"):
        return _certificate_files(part, place, _guarded(mode, sources.pod), sources)
    unknown = next((key for key in source if source[key] is not None), "nothing")
    raise VolumeFailure(f"projected sources of type {unknown} are not supported by this node yet")


def _guarded(mode: int, pod: Obj) -> Callable[[bytes], File]:
    """Files that only their owner reads, where one is known; a fsGroup adds to it."""
    owner = _only_user(spec_of(pod))
    is_guarded = owner is not None or group_of(pod) is not None
    return lambda data: File(data, TOKEN_MODE if is_guarded else mode, owner)


def _certificate_files(
    part: Obj, place: Place, file: Callable[[bytes], File], sources: Sources
) -> dict[str, File]:
    if sources.certificates is None:
        return {}
    shown = sources.certificates[place]
    if isinstance(shown, str):
        raise VolumeFailure(shown)
    if isinstance(shown, bytes):
        sources.room.take(len(shown))
        return {part.get("path", ""): file(shown)}
    contents = {
        "credentialBundlePath": shown.key + shown.chain,
        "keyPath": shown.key,
        "certificateChainPath": shown.chain,
    }
    return {part[field]: file(data) for field, data in contents.items() if part.get(field)}


def _files_by_key(
    kind: str, name: str, source: Obj, mode: int, sources: Sources
) -> dict[str, File]:
    """All keys, or those that `items` names."""
    found, optional = sources.objects.get((kind, name)), bool(source.get("optional"))
    if found is None:
        if optional:
            return {}
        raise VolumeFailure(f'{kind.lower()} "{name}" not found')
    data = _Data(kind, found)
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    files = {}
    for item in items:
        key = item.get("key", "")
        content = data.get(key)
        if content is not None:
            sources.room.take(len(content))
            own = item.get("mode")
            files[item.get("path", "")] = File(content, mode if own is None else own)
        elif not optional:
            raise VolumeFailure(f"{_MISSING_KEY[kind]}{key}")
    return files


class _Data:
    """The keys of a config map or a secret; what is asked for is made bytes, once."""

    def __init__(self, kind: str, found: Obj) -> None:
        self._what = f"{kind.lower()} {name_of(found)}"
        plain, encoded = found.get("data") or {}, found.get("binaryData") or {}
        self._plain, self._encoded = ({}, plain) if kind == SECRET else (plain, encoded)
        self._made: dict[str, bytes] = {}

    def __iter__(self) -> Iterator[str]:
        yield from self._plain
        yield from self._encoded

    def get(self, key: str) -> bytes | None:
        if key not in self._made:
            if key in self._encoded:
                self._made[key] = self._decoded(key)
            elif key in self._plain:
                self._made[key] = self._plain[key].encode()
        return self._made.get(key)

    def _decoded(self, key: str) -> bytes:
        try:
            return base64.b64decode(self._encoded[key] or "")
        except binascii.Error as error:
            raise VolumeFailure(f"{self._what} is damaged: {error}") from error


def _downward(source: Obj, mode: int, sources: Sources) -> dict[str, File]:
    files = {}
    fields: dict[str, bytes] = {}  # thousands of items may show the same
    for item in source.get("items") or ():
        own, path = item.get("mode"), (item.get("fieldRef") or {}).get("fieldPath", "")
        try:
            content = fields.get(path) or _downward_text(item, sources).encode()
        except ConfigError as error:
            raise VolumeFailure(str(error)) from error
        if path:
            fields[path] = content
        sources.room.take(len(content))
        files[item.get("path", "")] = File(content, mode if own is None else own)
    return files


def _downward_text(item: Obj, sources: Sources) -> str:
    pod, around = sources.pod, sources.around
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


@by_identity(8, OF_ANY_SIZE)
def _only_user(spec: Obj) -> int | None:
    """As upstream's FsUserFrom: the user of all containers, where they say so and agree."""
    pod = {"spec": spec}
    users = {effective(pod, container).get("runAsUser") for _, container in with_roles(pod)}
    user: int | None = users.pop() if len(users) == 1 else None
    return user
