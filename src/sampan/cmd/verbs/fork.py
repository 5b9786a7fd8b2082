"""`sampan fork`: a second cluster that goes on from the state of another one.

Job: the objects of a running cluster or of a snapshot into a new data directory; start it in the
    background with simulated nodes in the place of those that there were.
Invariant: the other cluster hears nothing of it; the new one has keys of its own.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.client.blocking import NoAnswer
from sampan.client.kubeconfig import KubeconfigError
from sampan.cmd.cluster.data_dir import DataDirError, Lock, open_data_dir
from sampan.cmd.errors import CannotStart
from sampan.cmd.snapshot.snapshot_file import BadSnapshot, Snapshot, read
from sampan.cmd.verbs.snapshot import directory_of, path_of, taken, write_to_store
from sampan.store.contract import StoreError


def run(data_dir: str, snapshot: str, to: str) -> int:
    try:
        data = directory_of(data_dir, must_exist=os.sep not in snapshot)
        found = read(path_of(data, snapshot)) if snapshot else taken(data)
        _fill(to, found)
    except (DataDirError, BadSnapshot, CannotStart, KubeconfigError, StoreError) as error:
        return _fail(str(error))
    except (NoAnswer, ApiError) as error:
        return _fail(f"the cluster cannot be read: {error}")
    names = [obj["metadata"]["name"] for obj in found.objects if obj["kind"] == "Node"]
    nodes = ["--runtime", "simulated", "--node-names", ",".join(names)]
    command = [sys.executable, "-m", "sampan", "up", "--detach", "--data-dir", to, "--port", "0"]
    return subprocess.run([*command, *(nodes if names else ["--runtime", "none"])]).returncode


def _fill(to: str, snapshot: Snapshot) -> None:
    if Path(to).exists() and any(Path(to).iterdir()):
        raise CannotStart(f"{to} is not empty: a fork needs a directory of its own")
    data = open_data_dir(to)
    lock = Lock.take(data)
    try:
        asyncio.run(write_to_store(f"sqlite:///{data.store}", snapshot))
    finally:
        lock.release()


def _fail(sentence: str) -> int:
    print(f"sampan: {' '.join(sentence.split())}", file=sys.stderr)
    return 1
