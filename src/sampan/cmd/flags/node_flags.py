"""Flags of one node, wherever it runs: name, address, network, registry credentials, cgroups.

Job: flags → words for NodeChoices; NodeChoices → settings of the node agent's parts.
Invariant: a configuration that cannot be used stops the start, with the file and the reason.
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sampan.api.rules.durations import parse_seconds
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import common, values
from sampan.cmd.settings import (
    CLUSTER_CIDR,
    CLUSTER_CIDR_IPV6,
    SERVICE_CIDR,
    SERVICE_CIDR_IPV6,
    NodeChoices,
    PluginChoices,
    Ranges,
)

if TYPE_CHECKING:
    from sampan.kubelet.images.credentials import NodeCredentialSettings
    from sampan.kubelet.node.shutdown_steps import ShutdownStep

CONFIG = "--image-credential-provider-config"
BIN_DIR = "--image-credential-provider-bin-dir"


def add_flags(parser: argparse.ArgumentParser) -> None:
    _add_node(parser.add_argument_group("the node (docs/node.md)").add_argument)
    _add_network(parser.add_argument_group("the network of pods and Services").add_argument)


def _add_node(add: common.Add) -> None:
    add(
        "--node-name",
        metavar="NAME",
        type=values.node_name,
        default="",
        help="default: the host's name",
    )
    add("--node-ip", metavar="IP[,IP]", type=values.addresses, default=(),
        help="one of each family (default: found by itself)")  # fmt: skip
    add("--manifests", metavar="DIR", default="", help="static pods: a directory, or one file")
    add("--kubelet-config", metavar="FILE", default="",
        help="a KubeletConfiguration: eviction, image garbage, logs, reports")  # fmt: skip
    add("--kubelet-config-dir", metavar="DIR", default="",
        help="drop-ins for it: files that end in .conf, merged over it by name")  # fmt: skip
    add(CONFIG, metavar="FILE", default="",
        help="a CredentialProviderConfig, or a directory of them: plugins that log in to "
        "registries")  # fmt: skip
    add(BIN_DIR, metavar="DIR", default="", help="where those plugins are")
    add("--registry-mirror", metavar="REGISTRY=URL", type=values.mirror, action="append",
        default=[], help="pull the images of docker.io, say, from there first; may be given "
        "again")  # fmt: skip
    add("--cgroup-driver", choices=("cgroupfs", "systemd", "none"), default="",
        help="who makes the pods' cgroups; none: pods have no limits of their own "
        "(default: as the runtime is set up)")  # fmt: skip
    add("--shutdown-grace-period", metavar="DURATION",
        type=parse_seconds, default=0.0,
        help="when told to stop, end the pods in order within this time, as a machine that goes "
        "down: they fail with reason Terminated (default: 0s, off)")  # fmt: skip
    add("--shutdown-grace-period-critical-pods", metavar="DURATION",
        type=parse_seconds, default=0.0,
        help="how much of it is kept for critical pods, which end last")  # fmt: skip


def _add_network(add: common.Add) -> None:
    add("--network", choices=("auto", "host-gw", "vxlan", "none"), default="auto",
        help="to other nodes' pods: routes (host-gw), a tunnel (vxlan), or routes where nodes are "
        "on one network and tunnels elsewhere (auto, the default of a cluster; a node that joins "
        "takes its cluster's, and its ranges); none: the CNI plugin that you "
        "configure makes pods' network, and NetworkPolicies are its affair")  # fmt: skip
    add("--cni-conf-dir", metavar="DIR", default="",
        help="with --network none: where your CNI configuration is "
        "(default: /etc/cni/net.d)")  # fmt: skip
    add("--cni-bin-dir", metavar="DIR", default="",
        help="with --network none: where the plugins are (default: /opt/cni/bin, or where the "
        "reference plugins are)")  # fmt: skip
    add("--service-proxy", metavar="BOOL", type=values.truth, default=True,
        help="with --network none: false leaves Services and names to what you install, too "
        "(default: true)")  # fmt: skip
    add("--cni", choices=("builtin", "reference"), default="builtin",
        help="who makes pods' interfaces: sampan, or the reference CNI plugins "
        "(default: builtin)")  # fmt: skip
    add("--ip-families", metavar="FAMILY[,FAMILY]", type=values.families, default=(),
        help="of pods and Services: ipv4, ipv6, ipv4,ipv6 or ipv6,ipv4, the main one first "
        "(default: those of the ranges, else ipv4)")  # fmt: skip
    add("--cluster-cidr", metavar="CIDR[,CIDR]", type=values.networks, default=(),
        help="of pods, one of each family; each node gets a /24 of it, of IPv6 a /64 "
        f"(default: {CLUSTER_CIDR}, {CLUSTER_CIDR_IPV6})")  # fmt: skip
    add("--service-cidr", metavar="CIDR[,CIDR]", type=values.networks, default=(),
        help="of Services, one of each family "
        f"(default: {SERVICE_CIDR}, {SERVICE_CIDR_IPV6})")  # fmt: skip
    add("--dns-stub-domain", metavar="DOMAIN=ADDRESS[:PORT],…", type=values.stub_domain,
        action="append", default=[],
        help="names in it are asked of these name servers; may be given again")  # fmt: skip


def plugin_choices(given: argparse.Namespace) -> PluginChoices:
    return PluginChoices(given.cni_conf_dir, given.cni_bin_dir, given.service_proxy)


def ranges(given: argparse.Namespace) -> Ranges:
    return Ranges(given.cluster_cidr, given.service_cidr, given.ip_families)


def choices(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "config_dir": given.kubelet_config_dir,
        "credential_provider_config": given.image_credential_provider_config,
        "credential_provider_bin_dir": given.image_credential_provider_bin_dir,
        "cgroup_driver": given.cgroup_driver,
        "shutdown_seconds": given.shutdown_grace_period,
        "shutdown_critical_seconds": given.shutdown_grace_period_critical_pods,
        "scenario": given.simulated_scenario,
        "registry_mirrors": tuple(given.registry_mirror),
    }


def shutdown_steps(node: NodeChoices) -> "tuple[ShutdownStep, ...]":
    """Raises CannotStart."""
    if node.shutdown_critical_seconds > node.shutdown_seconds:
        raise CannotStart(
            "--shutdown-grace-period-critical-pods is a part of --shutdown-grace-period: "
            "it cannot be longer"
        )
    # Not for every verb: the command line knows its flags without the node agent.
    from sampan.kubelet.node.shutdown_steps import steps_of

    return steps_of(node.shutdown_seconds, node.shutdown_critical_seconds)


def image_credentials(
    node: NodeChoices, root_dir: Path, environment: Mapping[str, str]
) -> "NodeCredentialSettings":
    """Raises CannotStart."""
    # Not for every verb: the command line knows its flags without the node agent.
    from sampan.kubelet.images.credential_file import search_order
    from sampan.kubelet.images.credentials import NodeCredentialSettings

    files = search_order(str(root_dir), environment.get("HOME", ""))
    config, bin_dir = node.credential_provider_config, node.credential_provider_bin_dir
    if not config and not bin_dir:
        return NodeCredentialSettings(files)
    if not config or not bin_dir:
        raise CannotStart(f"{CONFIG} and {BIN_DIR} belong together: one of them is missing")
    # Rarely used, and YAML takes its time.
    import yaml

    from sampan.kubelet.images.credential_providers import ProviderConfigError, merge, providers_of

    try:
        whole = merge(yaml.safe_load(path.read_text()) for path in _config_files(config))
        return NodeCredentialSettings(
            files, providers_of(whole, bin_dir=os.path.abspath(bin_dir), environment=environment)
        )
    except (OSError, yaml.YAMLError, ProviderConfigError) as error:
        raise CannotStart(f"{CONFIG} {config}: {error}") from error


def cgroup_driver(node: NodeChoices, said: str, *, private: bool) -> str:
    """Empty: the runtime alone decides where containers go. Raises CannotStart."""
    from sampan.kubelet.cgroups.names import WrongDriver, settled_driver
    from sampan.kubelet.cgroups.systemd import is_running

    try:
        return settled_driver(node.cgroup_driver, said, private=private, systemd_runs=is_running())
    except WrongDriver as error:
        raise CannotStart(str(error)) from error


def _config_files(config: str) -> list[Path]:
    """As upstream: in a directory those that end in .json, .yaml or .yml, by name."""
    path = Path(config)
    if not path.is_dir():
        return [path]
    return sorted(item for item in path.iterdir() if item.suffix in (".json", ".yaml", ".yml"))
