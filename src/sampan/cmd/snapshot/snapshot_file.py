"""A snapshot: all objects of a cluster at one revision, in one file.

Job: read and write it: compressed lines of JSON, the first says what it is.
Invariant: the file appears whole or not at all, readable by its owner only: it has the secrets.
"""

import gzip
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from sampan.api.objects import Obj
from sampan.api.resources import by_kind
from sampan.api.rules.names import dns_subdomain, path_segment
from sampan.cmd.cluster.data_dir import DataDir, find_data_dir
from sampan.core.fast_dataclass import dataclass

FORMAT = 1
KIND = "sampan snapshot"
SUFFIX = ".snapshot"
# Of API servers themselves. (What they know of taken ports goes, and is made anew by the next one.)
SERVERS = "/registry/masterleases/"
ENCRYPTED = b"k8s:enc:"  # how a value begins that is


class BadSnapshot(Exception):
    """One sentence: why a file is none, or why there is none."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    objects: Sequence[Obj]
    revision: str = ""
    server: str = ""
    taken: str = ""  # RFC 3339
    notes: Sequence[str] = ()  # what is not in it, or not at the revision


def write(path: Path, snapshot: Snapshot) -> None:
    head = {
        "kind": KIND,
        "format": FORMAT,
        "revision": snapshot.revision,
        "server": snapshot.server,
        "taken": snapshot.taken,
        "notes": [*snapshot.notes],
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    temporary.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as raw:
            with gzip.GzipFile("", "wb", 1, raw, mtime=0) as file:
                for value in (head, *snapshot.objects):
                    file.write(orjson.dumps(value) + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BadSnapshot(f"{path} cannot be written: {error.strerror or error}") from error


def read(path: Path) -> Snapshot:
    """Raises BadSnapshot."""
    try:
        with gzip.open(path, "rb") as file:
            lines = [orjson.loads(line) for line in file]
    except FileNotFoundError:
        raise BadSnapshot(f"there is no snapshot {path}") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise BadSnapshot(f"{path} is no snapshot, or a damaged one: {error}") from error
    if not lines or not isinstance(lines[0], dict) or lines[0].get("kind") != KIND:
        raise BadSnapshot(f"{path} is no snapshot")
    head, *objects = lines
    written_as = head.get("format")
    if not isinstance(written_as, int) or written_as < 1:
        raise BadSnapshot(f"{path} is damaged: its format is {written_as!r}")
    if written_as > FORMAT:
        raise BadSnapshot(
            f"{path} was written by a newer sampan (format {written_as}; this one knows {FORMAT})"
        )
    for number, obj in enumerate(objects, 2):
        if complaint := _complaint(obj):
            raise BadSnapshot(f"{path} is damaged: line {number}: {complaint}")
    told = {name: str(head.get(name, "")) for name in ("revision", "server", "taken")}
    return Snapshot(objects, notes=tuple(head.get("notes") or ()), **told)


def _complaint(obj: object) -> str:
    """What keeps it from being an object; empty: nothing."""
    if not isinstance(obj, dict):
        return "no object"
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        return "an object without metadata"
    identity = [obj.get("apiVersion"), obj.get("kind"), meta.get("name")]
    if not all(isinstance(word, str) and word for word in identity):
        return "an object without apiVersion, kind or name"
    namespace = meta.get("namespace", "")
    if not isinstance(namespace, str) or path_segment(meta["name"]) or path_segment(namespace):
        return f"{obj['kind']} {namespace}/{meta['name']} is no name"
    return ""


def directory_of(data_dir: str, *, must_exist: bool) -> DataDir:
    """Whoever names a file by its path needs no cluster around it."""
    return find_data_dir(data_dir) if must_exist else DataDir(Path(data_dir).absolute())


def path_of(data: DataDir, name: str) -> Path:
    """A snapshot of this cluster by its name, or any file by its path. Raises BadSnapshot."""
    if os.sep in name:
        return Path(name)
    if problems := dns_subdomain(name):
        raise BadSnapshot(f"{name!r} is no name of a snapshot: {problems[0]}")
    return data.root / "snapshots" / f"{name}{SUFFIX}"


def storage_keys(objects: Sequence[Obj]) -> Mapping[str, Obj]:
    """Where each lies in a store. Raises BadSnapshot for a kind that nobody defines."""
    custom = _custom_places(objects)
    keys = {}
    for obj in objects:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        known = by_kind(obj["apiVersion"], obj["kind"])
        place = custom.get((obj["apiVersion"], obj["kind"]))
        if known is not None:
            place = known.storage_prefix, known.namespaced
        if place is None:
            raise BadSnapshot(f"nobody defines the kind {obj['kind']} ({obj['apiVersion']})")
        prefix, namespaced = place
        if namespaced != bool(namespace):
            must = "is in a namespace" if namespaced else "is in no namespace"
            raise BadSnapshot(f"{obj['kind']} {namespace}/{name}: this kind {must}")
        keys[prefix + (f"{namespace}/{name}" if namespaced else name)] = obj
    return keys


def _custom_places(objects: Sequence[Obj]) -> Mapping[tuple[str, str], tuple[str, bool]]:
    """By apiVersion and kind: the prefix of its keys, and whether it is namespaced."""
    places = {}
    for obj in objects:
        if obj["kind"] != "CustomResourceDefinition":
            continue
        try:
            spec = obj["spec"]
            names, group = spec["names"], spec["group"]
            prefix = f"/registry/{names['plural']}.{group}/"
            for version in spec["versions"]:
                kind = f"{group}/{version['name']}", names["kind"]
                places[kind] = prefix, spec["scope"] == "Namespaced"
        except (KeyError, TypeError) as error:
            name = obj["metadata"]["name"]
            raise BadSnapshot(f"the CustomResourceDefinition {name} is damaged: {error}") from error
    return places
