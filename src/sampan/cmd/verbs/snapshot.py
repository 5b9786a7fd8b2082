"""`sampan snapshot`: a cluster's state, kept in a file, brought back, compared.

Job: find the cluster and the file, do it, say what was done.
"""

import asyncio
import os
import sys
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.client.blocking import BlockingClient, NoAnswer
from sampan.client.kubeconfig import KubeconfigError, load
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock, holder, store_url
from sampan.cmd.cluster.table import table
from sampan.cmd.errors import CannotStart
from sampan.cmd.snapshot.differences import differences
from sampan.cmd.snapshot.restore import restore
from sampan.cmd.snapshot.snapshot_file import (
    SUFFIX,
    BadSnapshot,
    Snapshot,
    directory_of,
    path_of,
    read,
    write,
)  # fmt: skip
from sampan.cmd.snapshot.take import take
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.store.contract import StoreError
from sampan.store.open import open_store


@dataclass(frozen=True, slots=True)
class SnapshotChoices:
    action: str
    data_dir: str
    name: str = ""
    kubeconfig: str = ""  # of another cluster
    secrets: bool = False
    store: str = ""  # empty: SQLite in the data dir


def run(chosen: SnapshotChoices) -> int:
    try:
        is_free = chosen.action == "import" and os.sep in chosen.name
        data = directory_of(chosen.data_dir, must_exist=not is_free)
        for line in _perform(chosen, data):
            print(line)
    except (DataDirError, BadSnapshot, KubeconfigError, CannotStart, StoreError) as error:
        return _fail(str(error))
    except NoAnswer as error:
        return _fail(f"{error.server} does not answer: {error}")
    except ApiError as error:
        return _fail(error.message)
    return 0


def _perform(chosen: SnapshotChoices, data: DataDir) -> list[str]:
    match chosen.action:
        case "save":
            return [*_save(data, chosen.name, taken(data)), *unlike_the_cluster(data)]
        case "import":
            return _save(data, chosen.name, _imported(chosen))
        case "restore":
            return _restore(data, read(path_of(data, chosen.name)), chosen.store)
        case "list":
            return _listed(data)
        case "rm":
            path = path_of(data, chosen.name)
            if not path.exists():
                raise BadSnapshot(f"there is no snapshot {chosen.name}")
            path.unlink()
            return [f"snapshot {chosen.name} removed"]
        case _:
            before = read(path_of(data, chosen.name))
            found = differences(before.objects, taken(data).objects)
            lines = [line for item in found for line in item.lines()]
            return lines or [f"nothing is different from snapshot {chosen.name}"]


def taken(data: DataDir) -> Snapshot:
    """Of the cluster that runs in the data directory."""
    if holder(data) is None:
        raise CannotStart(f"the cluster in {data.root} does not run: start it with `sampan up`")
    connection = load(str(data.kubeconfig), os.environ, "").connection()
    api = BlockingClient(connection, timeout_seconds=60.0)
    try:
        return take(api, SystemClock())
    finally:
        api.close()


def unlike_the_cluster(data: DataDir) -> list[str]:
    """Whoever encrypts objects at rest wants to know where they are not."""
    if not data.record().get("encrypted"):
        return []
    return ["note: unlike in the cluster's store, Secrets are not encrypted in it: keep it as safe"]


def _imported(chosen: SnapshotChoices) -> Snapshot:
    connection = load(chosen.kubeconfig, os.environ, str(Path.home())).connection()
    api = BlockingClient(connection)
    try:
        return take(api, SystemClock(), secrets=chosen.secrets)
    except ApiError as error:
        raise CannotStart(f"{connection.server} refuses: {error.message}") from error
    finally:
        api.close()


async def _write_to_store(url: str, snapshot: Snapshot) -> int:
    store = await open_store(url, SystemClock())
    try:
        return await restore(store, snapshot.objects)
    finally:
        await store.close()


def _save(data: DataDir, name: str, snapshot: Snapshot) -> list[str]:
    path = path_of(data, name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write(path, snapshot)
    return [
        f"snapshot {name}: {len(snapshot.objects)} objects at revision {snapshot.revision}",
        f"file: {path}",
        *(f"note: {note}" for note in snapshot.notes),
    ]


def _restore(data: DataDir, snapshot: Snapshot, store: str) -> list[str]:
    lock = Lock.take(data)  # says whose it is where the cluster runs
    try:
        writes = asyncio.run(_write_to_store(store or _own_store(data), snapshot))
    finally:
        lock.release()
    return [
        f"{len(snapshot.objects)} objects as of revision {snapshot.revision}, {writes} of them "
        "written; `sampan up` goes on from there"
    ]


def _own_store(data: DataDir) -> str:
    """Where they outlive it. Raises CannotStart."""
    url = store_url(data)
    if url.startswith("memory:"):
        raise CannotStart(
            "this cluster keeps its objects in memory, and they end with it: `sampan fork "
            "--snapshot NAME --to DIR` starts another with those of a snapshot"
        )
    return url


def _listed(data: DataDir) -> list[str]:
    rows = []
    for path in sorted((data.root / "snapshots").glob(f"*{SUFFIX}")):
        name, size = path.name.removesuffix(SUFFIX), f"{path.stat().st_size / 1024:.0f} KiB"
        try:
            found = read(path)
        except BadSnapshot:
            rows.append((name, "damaged", "", "", size))  # `diff` says why
        else:
            rows.append((name, found.taken, found.revision, str(len(found.objects)), size))
    if not rows:
        return ["there is no snapshot: `sampan snapshot save NAME` makes one"]
    return table(("NAME", "TAKEN", "REVISION", "OBJECTS", "SIZE"), rows)


def _fail(sentence: str) -> int:
    print(f"sampan: {' '.join(sentence.split())}", file=sys.stderr)
    return 1
