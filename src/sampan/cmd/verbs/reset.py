"""`sampan reset`: nothing of the cluster stays on the machine."""

import sys

from sampan.cmd.cluster import contexts
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock, find_data_dir
from sampan.cmd.cluster.node.places import other_nodes
from sampan.cmd.cluster.node.removal import clear, clear_node
from sampan.cmd.cluster.nodes import NODES_DIRECTORY
from sampan.cmd.errors import CannotStart
from sampan.cmd.rootless.rootless import inside_to_remove
from sampan.cmd.verbs.down import stop
from sampan.core.files.remove_tree import remove_tree


def run(data_dir: str, *, confirmed: bool) -> int:
    try:
        data = find_data_dir(data_dir)
        if not confirmed:
            print(
                f"sampan: this removes the cluster in {data.root} with its data, containers and "
                "network; say --yes to do it",
                file=sys.stderr,
            )
            return 1
        stop(data)
        lock = Lock.take(data)
    except DataDirError as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    try:
        with inside_to_remove(data.root):
            remove(data)
    except CannotStart as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"sampan: cannot remove {data.root}: {error}", file=sys.stderr)
        return 1
    lock.release()
    print(f"removed {data.root}")
    return 0


def remove(data: DataDir) -> None:
    """Other nodes of this machine first, then what is between them, then its own."""
    contexts.take_out(data)
    if (data.root / NODES_DIRECTORY).is_dir() and sys.platform == "linux":
        from sampan.network import node_lan

        for directory in other_nodes(data.root):
            clear_node(directory)
        node_lan.tear_down(data.root)
    clear(data)
    remove_tree(data.root)
