"""What a fork begins with: the objects of a cluster or of a snapshot, as the file of a new store.

Job: copy the store of a cluster where it is a file that can be read as it is; else ask its API, or
    read the snapshot, and write a file of that.
Invariant: the cluster hears nothing of it.
"""

from collections.abc import Sequence
from pathlib import Path

import orjson

from sampan.api.objects import Obj
from sampan.api.resources import NODES, SERVICE_CIDRS
from sampan.cmd.cluster.data_dir import OWN_STORE, DataDir
from sampan.cmd.snapshot.snapshot_file import ENCRYPTED, SERVERS, Snapshot
from sampan.core.fast_dataclass import dataclass
from sampan.store.sqlite_copy import copy_store, forget, has_value_like, living, write_store


@dataclass(frozen=True, slots=True)
class Facts:
    """What a cluster on these objects must be started with."""

    nodes: Sequence[Obj]
    service_cidrs: Sequence[str]


def copied(source: DataDir, target: Path) -> str:
    """What was copied; empty where a file is not all there is: the objects are elsewhere, or
    encrypted. Raises StoreError."""
    file = _file_of(source)
    if file is None:
        return ""
    copy_store(file, target)
    if has_value_like(target, ENCRYPTED):
        for left in target.parent.glob(f"{target.name}*"):
            left.unlink()
        return ""
    forget(target, SERVERS)
    return f"the store's file, {target.stat().st_size / 2**20:.1f} MiB"


def written(snapshot: Snapshot, target: Path, now: float) -> str:
    """What was written. Raises BadSnapshot, StoreError."""
    from sampan.cmd.snapshot.restore import new_entries  # who copies a file does not need it

    write_store(target, new_entries(snapshot.objects, now))
    return f"{len(snapshot.objects)} objects as of revision {snapshot.revision}"


def facts_in(target: Path) -> Facts:
    nodes = [orjson.loads(value) for value in living(target, NODES.storage_prefix).values()]
    cidrs = living(target, SERVICE_CIDRS.storage_key("", "kubernetes"))
    ranges = [orjson.loads(value)["spec"]["cidrs"] for value in cidrs.values()]
    return Facts(nodes, ranges[0] if ranges else ())


def _file_of(source: DataDir) -> Path | None:
    url = str(source.record().get("store"))  # of its last start
    if url == OWN_STORE:
        return source.store
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:////") else None
