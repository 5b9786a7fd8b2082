"""`sampan kubeconfig`: the cluster's access, printed, put into a kubeconfig, or taken out again.

Job: merge cluster, user and context under one name; remove exactly these.
"""

import os
import sys
from pathlib import Path
from typing import Any

import yaml

from sampan.client.kubeconfig import KubeconfigError, load, write_kubeconfig
from sampan.cmd.cluster.data_dir import DataDirError, find_data_dir


def run(action: str, data_dir: str, file: str, name: str) -> int:
    try:
        data = find_data_dir(data_dir)
        if action == "show":
            print(data.kubeconfig.read_text(), end="")
            return 0
        target = Path(file).expanduser() if file else default_file()
        name = name or context_name(data.root)
        if action == "merge":
            connection = load(str(data.kubeconfig), {}, "/").connection()
            write_kubeconfig(target, connection, name)
            print(f'context "{name}" is current in {target}')
        elif remove_context(target, name):
            print(f'context "{name}" is removed from {target}')
        else:
            print(f'there is no context "{name}" in {target}')
    except (DataDirError, KubeconfigError) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    return 0


def default_file() -> Path:
    listed = [one for one in os.environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    return Path(listed[0]) if listed else Path.home() / ".kube" / "config"


def context_name(root: Path) -> str:
    """After the data directory, so that two clusters in one file keep apart."""
    return "sampan" if root.name == "sampan-data" else f"sampan-{root.name}"


def remove_context(path: Path, name: str) -> bool:
    if not path.exists():
        return False
    document: dict[str, Any] = yaml.safe_load(path.read_bytes()) or {}
    names = {"contexts": name, "clusters": name, "users": f"{name}-admin"}
    before = [entry.get("name") for entry in document.get("contexts") or []]
    for section, own in names.items():
        entries = document.get(section) or []
        document[section] = [entry for entry in entries if entry.get("name") != own]
    if document.get("current-context") == name:
        document["current-context"] = ""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(yaml.safe_dump(document, sort_keys=False))
    beside.replace(path)
    return name in before
