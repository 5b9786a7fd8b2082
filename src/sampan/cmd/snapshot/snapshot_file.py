"""A snapshot: all objects of a cluster at one revision, in one file.

Job: read and write it: compressed lines of JSON, the first says what it is.
Invariant: the file appears whole or not at all, readable by its owner only: it has the secrets.
"""

import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import orjson

from sampan.api.objects import Obj
from sampan.api.resources import by_kind
from sampan.api.rules.names import dns_subdomain
from sampan.cmd.cluster.data_dir import DataDir, find_data_dir
from sampan.core.fast_dataclass import dataclass

FORMAT = 1
KIND = "sampan snapshot"
SUFFIX = ".snapshot"
# Of API servers themselves. (What they know of taken ports goes, and is made anew by the next one.)
SERVERS = "/registry/masterleases/"


class BadSnapshot(Exception):
    """One sentence: why a file is none, or why there is none."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    objects: Sequence[Obj]
    revision: str = ""
    server: str = ""
    taken: str = ""  # RFC 3339
    notes: Sequence[str] = field(default_factory=tuple)  # what is not in it, or not at the revision


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
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as raw:
        with gzip.GzipFile("", "wb", 1, raw, mtime=0) as file:
            for value in (head, *snapshot.objects):
                file.write(orjson.dumps(value) + b"\n")
        raw.flush()
        os.fsync(raw.fileno())
    os.replace(temporary, path)


def read(path: Path) -> Snapshot:
    """Raises BadSnapshot."""
    try:
        with gzip.open(path, "rb") as file:
            head, *objects = [orjson.loads(line) for line in file]
    except FileNotFoundError:
        raise BadSnapshot(f"there is no snapshot {path}") from None
    except (OSError, EOFError, ValueError) as error:
        raise BadSnapshot(f"{path} is no snapshot, or a damaged one: {error}") from error
    if not isinstance(head, dict) or head.get("kind") != KIND:
        raise BadSnapshot(f"{path} is no snapshot")
    if head.get("format", 0) > FORMAT:
        raise BadSnapshot(f"{path} was written by a newer sampan")
    told = {name: head.get(name, "") for name in ("revision", "server", "taken")}
    return Snapshot(objects, notes=tuple(head.get("notes") or ()), **told)


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
    custom = {}
    for obj in objects:
        if obj["kind"] == "CustomResourceDefinition":
            spec = obj["spec"]
            for version in spec["versions"]:
                kind = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                prefix = f"/registry/{spec['names']['plural']}.{spec['group']}/"
                custom[kind] = (prefix, spec["scope"] == "Namespaced")
    keys = {}
    for obj in objects:
        meta = obj["metadata"]
        known = by_kind(obj["apiVersion"], obj["kind"])
        if known is not None:
            keys[known.storage_key(meta.get("namespace", ""), meta["name"])] = obj
            continue
        if (obj["apiVersion"], obj["kind"]) not in custom:
            raise BadSnapshot(f"nobody defines the kind {obj['kind']} ({obj['apiVersion']})")
        prefix, namespaced = custom[obj["apiVersion"], obj["kind"]]
        inner = f"{meta['namespace']}/{meta['name']}" if namespaced else meta["name"]
        keys[prefix + inner] = obj
    return keys
