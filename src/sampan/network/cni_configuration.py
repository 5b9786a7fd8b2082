"""CNI configurations, and where they and the plugins are.

Job: what the container runtime reads: which plugin makes pods' interfaces, by our own configuration
    or by the user's.
"""

import json
from pathlib import Path

from sampan.api.objects import Obj
from sampan.network.bridge import PodNetwork, write_if_changed
from sampan.network.pods.plugin_protocol import OWN

PLUGIN_DIRECTORIES = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
FOREIGN_CONFIGURATIONS, _FOREIGN_PLUGINS = "/etc/cni/net.d", "/opt/cni/bin"
# The directory of the configuration for pods with host ports, below the other one.
HOST_PORTS = "host-ports"
PLUGINS = ("bridge", "host-local", "loopback", "portmap")
_NAME = "sampan"


def own_conflist() -> Obj:
    """Of our own plugin: it asks the node agent for everything."""
    plugin = {"type": OWN, "capabilities": {"portMappings": True, "bandwidth": True}}
    return {"cniVersion": "1.0.0", "name": _NAME, "plugins": [plugin]}


def conflist(
    network: PodNetwork,
    ipam_dir: str,
    *,
    masquerade: bool,
    host_ports: bool = False,
    bandwidth: bool = False,
) -> Obj:
    """`masquerade` only where the machine has neither nft nor iptables for one common rule;
    `host_ports` for the pods that have some: the plugin costs all others 5 ms for nothing.
    `bandwidth` likewise for those that have limits of it."""
    bridge: Obj = {
        "type": "bridge",
        "bridge": network.bridge,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": each}] for each in network.subnets],
            "routes": [{"dst": "::/0" if ":" in each else "0.0.0.0/0"} for each in network.subnets],
            "dataDir": ipam_dir,
        },
    }
    if masquerade:
        bridge["ipMasq"] = True
    plugins = [bridge]
    if host_ports:
        plugins.append({"type": "portmap", "capabilities": {"portMappings": True}, "snat": True})
    if bandwidth:
        plugins.append({"type": "bandwidth", "capabilities": {"bandwidth": True}})
    return {"cniVersion": "1.0.0", "name": _NAME, "plugins": plugins}


def plugin_directory() -> Path | None:
    """Where the CNI plugins are, all of those that are needed."""
    for directory in PLUGIN_DIRECTORIES:
        if all((Path(directory) / plugin).exists() for plugin in PLUGINS):
            return Path(directory)
    return None


def shapes_bandwidth() -> bool:
    """The plugin for it is optional."""
    directory = plugin_directory()
    return directory is not None and (directory / "bandwidth").exists()


def foreign_plugins() -> Path:
    """Where a user's own plugins are, as elsewhere."""
    found = [Path(each) for each in (_FOREIGN_PLUGINS, *PLUGIN_DIRECTORIES) if Path(each).is_dir()]
    return found[0] if found else Path(_FOREIGN_PLUGINS)


def conf_directory(data_dir: Path) -> Path:
    return data_dir / "cni"


def write_configurations(conf_dir: Path, plain: Obj, special: Obj) -> None:
    """For most pods, and for those with host ports or limits of bandwidth."""
    for directory, config in ((conf_dir, plain), (conf_dir / HOST_PORTS, special)):
        directory.mkdir(parents=True, exist_ok=True)
        write_if_changed(directory / "10-sampan.conflist", json.dumps(config, indent=1))
