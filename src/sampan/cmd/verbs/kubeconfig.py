"""`sampan kubeconfig`: the cluster's access, printed, put into a kubeconfig, or taken out again.

Job: merge cluster, user and context under one name; remove exactly these.
"""

import os
import sys
from pathlib import Path

from sampan.client.kubeconfig import KubeconfigError, load, remove_context, write_kubeconfig
from sampan.cmd.cluster.data_dir import DataDirError, find_data_dir


def run(action: str, data_dir: str, file: str, name: str) -> int:
    try:
        data = find_data_dir(data_dir)
        if action == "show":
            print(data.kubeconfig.read_text(), end="")
            return 0
        target = Path(file).expanduser() if file else default_file()
        name = name or data.context_name
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
    listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(listed[0]) if listed else Path.home() / ".kube" / "config"
