"""`sampan kubeconfig`: the cluster's access, printed, put into a kubeconfig, or taken out again.

Job: merge cluster, user and context under one name; remove exactly these.
"""

import os
import sys
from pathlib import Path

from sampan.client.kubeconfig import KubeconfigError, load
from sampan.client.kubeconfig_file import default_path
from sampan.cmd.cluster import contexts
from sampan.cmd.cluster.data_dir import DataDirError, find_data_dir


def run(action: str, data_dir: str, file: str, name: str) -> int:
    try:
        data = find_data_dir(data_dir)
        if not data.kubeconfig.exists():
            raise DataDirError(
                f"the cluster in {data.root} has never been ready: `sampan up` first"
            )
        if action == "show":
            print(data.kubeconfig.read_text(), end="")
            return 0
        target = (
            Path(file).expanduser().absolute()
            if file
            else default_path(os.environ, str(Path.home()))
        )
        if action == "merge":
            connection = load(str(data.kubeconfig), {}, "/").connection()
            name = contexts.put(data, target, connection, name=name)
            print(f'context "{name}" is current in {target}')
        elif gone := contexts.take_out(data, target, name):
            for _, context in gone:
                print(f'context "{context}" is removed from {target}')
        else:
            what = f'context "{name}"' if name else "context"
            print(f"there is no {what} of this cluster in {target}")
    except (DataDirError, KubeconfigError) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    return 0
