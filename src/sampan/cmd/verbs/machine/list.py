"""`sampan list`: the clusters of this user, and what each is at.

Job: name, state, address, version and size of every named cluster, and of ./sampan-data.
"""

import json
import os
from pathlib import Path
from typing import Any

from sampan.client.kubeconfig import KubeconfigError, load
from sampan.cmd.cluster.cluster_names import known_clusters
from sampan.cmd.cluster.data_dir import DataDir, holder
from sampan.cmd.cluster.table import table

COLUMNS = ("name", "state", "address", "version", "size", "data")


def run(*, as_json: bool) -> int:
    found = [_facts(name, DataDir(path)) for name, path in known_clusters(os.environ, Path.cwd())]
    if as_json:
        print(json.dumps(found, indent=2))
        return 0
    if not found:
        print("no clusters: `sampan up` starts one, `sampan up --name dev` one with a name")
        return 0
    rows = [[_text(row[column]) for column in COLUMNS] for row in found]
    print("\n".join(table([column.upper() for column in COLUMNS], rows)))
    return 0


def _facts(name: str, data: DataDir) -> dict[str, Any]:
    return {
        "name": name,
        "state": "running" if holder(data) else "stopped",
        "address": _address(data),
        "version": str(data.record().get("version", "")),
        "size": disk_bytes(data.root),
        "data": str(data.root),
    }


def _address(data: DataDir) -> str:
    try:
        return load(str(data.kubeconfig), {}, "/").connection().server
    except (KubeconfigError, OSError):  # it has never been ready
        return ""


def disk_bytes(root: Path) -> int:
    """What its files take on this disk; what is mounted below it belongs elsewhere."""
    total = 0
    try:
        device = root.stat().st_dev
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if _device(os.path.join(folder, name)) == device]
            total += sum(_blocks(os.path.join(folder, name)) for name in files)
    except OSError:
        return total
    return total


def _device(path: str) -> int:
    try:
        return os.lstat(path).st_dev
    except OSError:  # gone meanwhile
        return -1


def _blocks(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0


def _text(value: Any) -> str:
    if isinstance(value, int):
        return f"{value / 2**20:.1f} MiB"
    return str(value) or "-"
