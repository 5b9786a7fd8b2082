"""One real node of several on a machine, as a process of its own.

Job: enter the node's network namespace, then be what `sampan kubelet --join` is.
Invariant: its directory is its own, below the cluster's; its certificates are signed by the
    cluster's authority, which is on this machine.
"""

import io
import ipaddress
from dataclasses import replace
from importlib import import_module

from sampan.cmd.cluster import machine
from sampan.cmd.cluster.addresses import url_of
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.node.places import directory_of, namespace_of
from sampan.cmd.cluster.node.real_node import LOADED_MEANWHILE
from sampan.cmd.cluster.process import Parts
from sampan.cmd.cluster.processes.parts import PartContext
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import NodeProcessSettings
from sampan.cmd.verbs.kubelet import NodeProcess
from sampan.network.pods.interfaces import enter


def enter_network(given: PartContext) -> None:
    """Before there is a thread. Raises OSError."""
    enter(str(namespace_of(directory_of(given.data.root, given.words.node["name"]))))


def load() -> None:
    """What it needs, while the parent is busy with the rest."""
    for module in LOADED_MEANWHILE:
        import_module(f"sampan.{module}")


def node_of(_part: str, given: PartContext) -> Parts:
    name, root = given.words.node["name"], given.data.root
    directory = directory_of(root, name)
    up = replace(
        given.settings,
        data_dir=str(directory),
        runtime=given.words.runtime,
        node_name=name,
        node_ips=tuple(given.words.node["addresses"].split(",")),
        nodes=1,
        node_names=(),
        ready_file="",
        name_servers=_name_servers(given.words.node["names"]),
    )
    silent = Progress(io.StringIO(), given.clock)  # the parent says what there is to say
    server = url_of(given.words.node["server"], int(given.data.record()["port"]))
    settings = NodeProcessSettings(up, join=str(root), server=server, awaits_ready=True)
    return NodeProcess(settings, open_data_dir(str(directory)), silent, given.clock)


def _name_servers(first: str) -> tuple[str, ...]:
    """The machine's own, unless they are for the machine only: then its node is asked."""
    servers = machine.host_dns().servers
    is_local = any(ipaddress.ip_address(each).is_loopback for each in servers)
    return tuple(first.split(",")) if is_local else ()
