"""`sampan up`: its flags, and the settings that they make."""

import argparse
import os
from pathlib import Path

from sampan.client.kubeconfig_file import default_path
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import (
    api_server_flags,
    common,
    node_flags,
    release_flags,
    scenario,
    stages,
    tracing,
    values,
)
from sampan.cmd.flags.shown_flags import shown_flags
from sampan.cmd.settings import DEFAULT_PORT, IngressChoices, NodeChoices, RuntimeChoice, UpSettings


def add_verb(verbs: common.Verbs) -> None:
    up = common.verb(verbs, "up", "start a cluster")
    add = up.add_argument
    add("--use", action="store_true",
        help="write it where kubectl looks ($KUBECONFIG, ~/.kube/config): the current context from "
        "now on, until `sampan reset` takes it out")  # fmt: skip
    add("--kubeconfig", metavar="FILE", default="", help="write the kubeconfig here, too")
    add("--detach", action="store_true", help="go to the background when ready")
    add("--with", dest="manifests_to_apply", metavar="FILE", action="append", default=[],
        help="apply these objects (a file, or a directory) and wait until they are ready; `csi`: "
        "with a CSI driver beside the node; `ingress`: as --ingress; "
        "may be given again")  # fmt: skip
    add("--config", metavar="FILE", default="",
        help="a ClusterConfiguration: any of these flags, as camelCase: value")  # fmt: skip
    add("--ready-file", metavar="FILE", default="", help="written when the cluster is ready")
    add(
        "--keep-pods",
        action="store_true",
        help="leave containers running when sampan stops; the next start adopts them",
    )
    common.log_level(up)
    add("--processes", action="store_true",
        help="API server, scheduler, controllers and nodes are processes of their own under this "
        "one, which starts again whichever ends")  # fmt: skip
    # Of those: which part it is, and what it inherits.
    add("--part", default="", help=argparse.SUPPRESS)
    _add_runtime(up.add_argument_group("what pods run on").add_argument)
    node_flags.add_flags(up)
    _add_control_plane(up)
    release_flags.add_flags(up)
    api_server_flags.add_flags(up)


def _add_runtime(add: common.Add) -> None:
    add(
        "--runtime",
        choices=("auto", "cri", "native", "simulated", "none"),
        default="auto",
        help="auto: crun and conmon (native) where they are installed, else a private containerd "
        "(cri), else simulated nodes; a cluster that was started before stays on what it has; "
        "cri and native: this one or nothing; none: control plane only",
    )
    add("--nodes", metavar="N", type=values.count, default=1,
        help="how many: simulated ones, or real ones (the machine itself, and others in network "
        "namespaces; see `sampan node`)")  # fmt: skip
    add("--node-names", metavar="A,B", type=values.names, default=(),
        help="of the nodes, instead of a number of them")  # fmt: skip
    add(scenario.NODES_FLAG, metavar="FILE", default="", help=scenario.NODES_HELP)
    add("--clock", choices=("real", "virtual"), default="real",
        help="virtual: time stands still until `sampan clock advance` moves it; in "
        "memory, with simulated nodes (default: real)")  # fmt: skip
    add(scenario.FLAG, metavar="FILE", default="", help=scenario.HELP)
    add("--cri-socket", metavar="PATH", default="", help="use a runtime that already runs")


def _add_control_plane(up: argparse.ArgumentParser) -> None:
    group = up.add_argument_group("the control plane")
    add = group.add_argument
    add("--bind-address", metavar="IP", default="127.0.0.1", help="default: %(default)s")
    add(
        "--port",
        type=values.port,
        default=None,
        help=f"of the API server; 0 takes any free one (default: {DEFAULT_PORT}; 0 with --name)",
    )
    add(
        "--store",
        metavar="URL",
        default="",
        help="memory:, sqlite:////absolute/path or etcd://host:port,host:port/prefix (with TLS: "
        "?cacert=FILE&cert=FILE&key=FILE); default: SQLite in the data dir",
    )
    common.controllers(group)
    add("--scheduler", type=values.truth, default=True, metavar="BOOL",
        help="false: yours takes its place (default: true)")  # fmt: skip
    add(
        "--scheduler-config",
        metavar="FILE",
        default="",
        help="a KubeSchedulerConfiguration: profiles, plugins, extenders",
    )
    add("--service-lb", type=values.truth, default=True, metavar="BOOL",
        help="false: addresses of LoadBalancers are left to others (default: true)")  # fmt: skip
    add(stages.FLAG, metavar="PATH", action="append", default=[], help=stages.HELP)
    add("--ingress", action="store_true",
        help="serve Ingresses, and the Gateway API where it is defined: class sampan")  # fmt: skip
    add("--ingress-ports", metavar="HTTP,HTTPS", type=values.two_ports, default=None,
        help="of the machine, at --bind-address; 0 takes any free one (default: 80,443; 8080,8443 "
        "without root)")  # fmt: skip
    add("--tracing", type=values.truth, default=True, metavar="BOOL",
        help="false: nothing is remembered for `sampan trace` (default: true)")  # fmt: skip
    add(tracing.FLAG, metavar="FILE", default="", help=tracing.HELP)


def up_settings(given: argparse.Namespace) -> UpSettings:
    return UpSettings(
        data_dir=given.data_dir,
        kubeconfig=_kubeconfig_of(given),
        bind_address=given.bind_address,
        port=_port_of(given),
        store=_store_of(given),
        runtime=_runtime_of(given),
        nodes=given.nodes,
        node_names=given.node_names,
        nodes_file=given.nodes_file,
        cri_socket=given.cri_socket,
        node_name=given.node_name,
        node_ips=given.node_ip,
        ready_file=given.ready_file,
        log_level=given.log_level,
        keep_pods=given.keep_pods,
        network=given.network,
        cni=given.cni,
        plugins=node_flags.plugin_choices(given),
        ranges=node_flags.ranges(given),
        stub_domains=tuple(given.dns_stub_domain),
        node=NodeChoices(
            config=given.kubelet_config, manifests=given.manifests, **node_flags.choices(given)
        ),
        controllers=_controllers_of(given),
        stages=tuple(given.stages),
        tracing=given.tracing,
        tracing_config_file=given.tracing_config_file,
        scheduler=given.scheduler,
        scheduler_config=given.scheduler_config,
        security=api_server_flags.choices(given),
        clock=given.clock,
        processes=_processes_of(given),
        manifests_to_apply=tuple(
            word for word in given.manifests_to_apply if not _is_ingress(word)
        ),
        ingress=_ingress_of(given),
        release=release_flags.choices(given),
        flags=shown_flags(given),
    )


def _processes_of(given: argparse.Namespace) -> bool:
    if given.processes and given.clock != "real":
        raise CannotStart("--clock virtual is one clock for one process: leave --processes out")
    return bool(given.processes)


def _store_of(given: argparse.Namespace) -> str:
    if given.clock == "real":
        return str(given.store)
    if given.store not in ("", "memory:"):
        raise CannotStart("--clock virtual keeps its objects in memory: leave --store out")
    return "memory:"


def _runtime_of(given: argparse.Namespace) -> RuntimeChoice:
    chosen: RuntimeChoice = given.runtime
    if given.clock == "real" or chosen in ("simulated", "none"):
        return chosen
    if chosen in ("cri", "native") or given.cri_socket:
        raise CannotStart("--clock virtual is for simulated nodes: real containers have real time")
    return "simulated"


def _controllers_of(given: argparse.Namespace) -> tuple[str, ...]:
    return (*given.controllers, *(() if given.service_lb else ("-service-lb-controller",)))


def _is_ingress(word: str) -> bool:
    """What is after --with, unless there is a file of that name."""
    return word == "ingress" and not os.path.exists(word)


def _ingress_of(given: argparse.Namespace) -> IngressChoices | None:
    if not given.ingress and not any(map(_is_ingress, given.manifests_to_apply)):
        if given.ingress_ports is not None:
            raise CannotStart("--ingress-ports is for --ingress")
        return None
    standard = (80, 443) if os.geteuid() == 0 else (8080, 8443)
    return IngressChoices(*(given.ingress_ports or standard))


def _port_of(given: argparse.Namespace) -> int:
    """Clusters with names run side by side: each keeps a port of its own, whichever was free."""
    if given.port is not None:
        return int(given.port)
    return 0 if given.cluster_name else DEFAULT_PORT


def _kubeconfig_of(given: argparse.Namespace) -> str:
    if not given.use:
        return str(given.kubeconfig)
    if given.kubeconfig:
        raise CannotStart("--kubeconfig and --use both say where to write: give one")
    return str(default_path(os.environ, str(Path.home())))
