"""The command line: flags become settings here, and nowhere else.

Job: parse, call the verb, print a failure as one clear line, and choose the exit code.
"""

import argparse
import difflib
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import defaults, node_flags, security
from sampan.cmd.settings import (
    DEFAULT_DATA_DIR,
    DEFAULT_PORT,
    ControllersSettings,
    NodeChoices,
    NodeProcessSettings,
    ProxyProcessSettings,
    UpSettings,
)
from sampan.version import GIT_VERSION, KUBERNETES_VERSION, VERSION

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
EXAMPLES = """\
examples:
  sampan up                                    a one-node cluster in the foreground; Ctrl-C stops it
  sampan up --detach --kubeconfig kubeconfig   in the background; returns when it is ready
  sampan up --runtime simulated --nodes 100    no containers: 100 simulated nodes
  sampan up --runtime simulated --simulated-scenario scenario.yaml    pods that fail as you say
  sampan kubelet --join ./sampan-data --data-dir ./node2 --node-name two    another node
  sampan token create                          print the line that another machine joins with
  sampan kubelet --manifests ./manifests       a node by itself: no API server
  sampan up --controllers '*,-job'             without one of the controllers: yours takes its place
  sampan controllers --kubeconfig kubeconfig   the controllers as a process of their own
  sampan image import app.tar                  give the node an image without a registry
  sampan why pod/web                           why it is Pending, and what would let it fit
  sampan why service/web                       why it leads nowhere
  sampan schedule --dry-run -f pods.yaml       where pods would go
  sampan status                                what runs, and what is wrong with it
  sampan doctor                                is this machine fit for real containers
  sampan down                                  stop it
  sampan reset --yes                           remove everything, containers and network included
"""


def main(arguments: Sequence[str] | None = None) -> int:
    words = _join(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    try:
        given = parser.parse_args(_with_defaults(parser, words))
        return _dispatch(given)
    except CannotStart as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        # What the machine can cause, and no verb has said better.
        where = f"{error.filename}: " if error.filename else ""
        print(f"sampan: {where}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1


def _with_defaults(parser: argparse.ArgumentParser, words: list[str]) -> list[str]:
    """What a file and the environment say about the verb's flags, before what was given."""
    [verbs] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    own = verbs.choices.get(words[0]) if words else None
    if own is None or words[0] == "image":  # its flags belong to its own verbs
        return words
    return [words[0], *defaults.words(own, words[1:], os.environ), *words[1:]]


def _join(arguments: Sequence[str]) -> list[str]:
    """`--controllers -job` as `--controllers=-job`: a value that looks like a flag."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--controllers":
            joined[-1] = f"--controllers={argument}"
        else:
            joined.append(argument)
    return joined


def _dispatch(given: argparse.Namespace) -> int:
    # Each verb imports what it needs when it runs: `sampan version` must not pay for a cluster.
    match given.verb:
        case "up" | "kubelet" | "join" | "service-proxy" | "controllers":
            return _start(given)
        case "token":
            from sampan.cmd.verbs import token

            return token.run(given.data_dir)
        case "down":
            from sampan.cmd.verbs import down

            return down.run(given.data_dir)
        case "reset":
            from sampan.cmd.verbs import reset

            return reset.run(given.data_dir, confirmed=given.yes)
        case "image":
            from sampan.cmd.verbs import image

            return image.run(given.action, given.data_dir, getattr(given, "file", ""))
        case "status" | "doctor" | "log" | "kubeconfig":
            return _look(given)
        case "why":
            from sampan.cmd.verbs import why

            return why.run(given.what, given.namespace, given.kubeconfig, given.to)
        case "schedule":
            from sampan.cmd.verbs import schedule

            return schedule.run(
                given.file,
                dry=given.dry_run,
                cluster=given.cluster,
                namespace=given.namespace,
                kubeconfig_path=given.kubeconfig,
            )
        case "version":
            print(f"sampan {VERSION} (Kubernetes {KUBERNETES_VERSION}, {GIT_VERSION})")
            return 0
        case _:
            _parser().print_help(sys.stderr)
            return 2


def _start(given: argparse.Namespace) -> int:
    """The verbs that run until they are told to stop."""
    if given.verb == "service-proxy":
        from sampan.cmd.verbs import service_proxy

        return service_proxy.run(_proxy_settings(given))
    # What a start imports and builds stays: looking through it for garbage, again and again,
    # costs a tenth of the start. process.settle_memory enables it.
    gc.disable()
    match given.verb:
        case "up":
            from sampan.cmd.verbs import up

            # The process in the background has --ready-fd: a file or the environment may tell it
            # to detach, too, and it must not start another.
            detach = given.detach and given.ready_fd < 0
            return up.run(_up_settings(given), detach=detach, ready_fd=given.ready_fd)
        case "join":
            from sampan.cmd.verbs import join

            settings = _node_settings(given)
            return join.run(given.server, given.token, given.ca_hash, settings)
        case "kubelet":
            from sampan.cmd.verbs import kubelet

            return kubelet.run(_node_settings(given))
        case _:
            from sampan.cmd.verbs import controllers

            return controllers.run(_controllers_settings(given))


def _look(given: argparse.Namespace) -> int:
    match given.verb:
        case "status":
            from sampan.cmd.verbs import status

            return status.run(given.data_dir, as_json=given.output == "json")
        case "doctor":
            from sampan.cmd.verbs import doctor

            return doctor.run(given.data_dir, given.port)
        case "log":
            from sampan.cmd.verbs import log

            return log.run(given.data_dir, follow=given.follow, lines=given.tail)
        case _:
            from sampan.cmd.verbs import kubeconfig

            return kubeconfig.run(given.action, given.data_dir, given.file, given.name)


def _up_settings(given: argparse.Namespace) -> UpSettings:
    return UpSettings(
        data_dir=given.data_dir,
        kubeconfig=given.kubeconfig,
        bind_address=given.bind_address,
        port=given.port,
        store=given.store,
        runtime=given.runtime,
        nodes=given.nodes,
        cri_socket=given.cri_socket,
        node_name=given.node_name,
        node_ip=given.node_ip,
        ready_file=given.ready_file,
        log_level=given.log_level,
        keep_pods=given.keep_pods,
        network=given.network,
        node=NodeChoices(
            config=given.kubelet_config, manifests=given.manifests, **node_flags.choices(given)
        ),
        controllers=given.controllers,
        scheduler=given.scheduler,
        scheduler_config=given.scheduler_config,
        security=security.choices(given),
    )


def _controllers_settings(given: argparse.Namespace) -> ControllersSettings:
    return ControllersSettings(
        kubeconfig=given.kubeconfig,
        controllers=given.controllers,
        leader_elect=given.leader_elect,
        root_ca_file=given.root_ca_file,
        signing_cert_file=given.cluster_signing_cert_file,
        signing_key_file=given.cluster_signing_key_file,
        account_key_file=given.service_account_private_key_file,
        cluster_cidrs=given.cluster_cidr,
        ready_file=given.ready_file,
        log_level=given.log_level,
    )


def _proxy_settings(given: argparse.Namespace) -> ProxyProcessSettings:
    return ProxyProcessSettings(
        kubeconfig=given.kubeconfig,
        node_name=given.node_name,
        cluster_cidrs=given.cluster_cidr,
        service_cidrs=given.service_cidr,
        ready_file=given.ready_file,
        log_level=given.log_level,
    )


def _node_settings(given: argparse.Namespace) -> NodeProcessSettings:
    choices = NodeChoices(
        config=given.kubelet_config,
        manifests=given.manifests,
        manifest_url=given.manifest_url,
        manifest_url_headers=tuple(given.manifest_url_header),
        register=given.register_node,
        standalone=not (given.kubeconfig or given.join or given.bootstrap_kubeconfig)
        and bool(given.manifests or given.manifest_url),
        labels=dict(given.node_labels),
        taints=tuple(given.register_with_taints),
        port=given.port,
        **node_flags.choices(given),
    )
    return NodeProcessSettings(
        up=UpSettings(
            data_dir=given.data_dir,
            runtime=given.runtime,
            cri_socket=given.cri_socket,
            node_name=given.node_name,
            node_ip=given.node_ip,
            ready_file=given.ready_file,
            log_level=given.log_level,
            keep_pods=not given.stop_pods,
            network=given.network,
            node=choices,
        ),
        kubeconfig=given.kubeconfig,
        join=given.join,
        bootstrap_kubeconfig=given.bootstrap_kubeconfig,
        tls_cert_file=given.tls_cert_file,
        tls_private_key_file=given.tls_private_key_file,
        client_ca_file=given.client_ca_file,
    )


class _Parser(argparse.ArgumentParser):
    """Wrong words: one sentence, what was perhaps meant, and where the help is."""

    def error(self, message: str) -> NoReturn:
        hint = ""
        unknown = message.partition("unrecognized arguments: ")[2].split()
        if unknown and unknown[0].startswith("--"):
            known = [name for action in self._every_action() for name in action.option_strings]
            close = difflib.get_close_matches(unknown[0].partition("=")[0], known, n=2)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
        self.exit(2, f"{self.prog}: {message}{hint}\nsee {self.prog} --help\n")

    def _every_action(self) -> list[argparse.Action]:
        found = list(self._actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    found += parser._actions
        return found


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="sampan",
        description=f"A Kubernetes ({KUBERNETES_VERSION}) you can pip install.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    _add_up(verbs)
    _add_kubelet(verbs)
    _add_controllers(verbs)
    _verb(verbs, "down", "stop a cluster")
    reset = _verb(verbs, "reset", "remove a cluster: data, containers, network")
    reset.add_argument("--yes", action="store_true", help="really do it")
    image = verbs.add_parser("image", help="the node's images")
    actions = image.add_subparsers(dest="action", metavar="ACTION", required=True)
    importing = actions.add_parser("import", help="load an OCI or docker archive")
    importing.add_argument("file", metavar="FILE", help="made by `docker save` or the like")
    _data_dir(importing)
    _data_dir(actions.add_parser("list", help="what is there"))
    removing = actions.add_parser("rm", help="remove an image, with all of its names")
    removing.add_argument("file", metavar="IMAGE", help="a name or an id, as `list` shows it")
    _data_dir(removing)
    _add_questions(verbs)
    _add_looks(verbs)
    verbs.add_parser("version", help="which sampan, which Kubernetes")
    return parser


def _add_looks(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    status = _verb(verbs, "status", "what runs: address, nodes, pods, memory, certificates")
    status.add_argument("-o", "--output", choices=("text", "json"), default="text")
    doctor = _verb(verbs, "doctor", "is this machine fit for real containers")
    doctor.add_argument("--port", type=_port, default=DEFAULT_PORT, help="default: %(default)s")
    log = _verb(verbs, "log", "what a cluster in the background wrote")
    log.add_argument("-f", "--follow", action="store_true", help="go on as it grows")
    log.add_argument("--tail", metavar="N", type=int, default=-1, help="only the last N lines")
    kubeconfig = _verb(verbs, "kubeconfig", "the cluster's access: show, merge or remove")
    kubeconfig.add_argument(
        "action", choices=("show", "merge", "remove"), nargs="?", default="show"
    )
    kubeconfig.add_argument("--file", metavar="FILE", default="", help="default: as kubectl")
    kubeconfig.add_argument("--name", metavar="NAME", default="", help="of the context")


def _add_questions(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    why = verbs.add_parser(
        "why",
        help="why a pod is Pending or not Ready, a Service leads nowhere, a name does not resolve, "
        "a policy refuses a connection",
    )
    why.add_argument("what", metavar="pod/NAME | service/NAME | name/HOST")
    why.add_argument("--to", metavar="[NAMESPACE/]POD:PORT[/UDP]", default="",
                     help="with pod/NAME: do NetworkPolicies let it connect there?")  # fmt: skip
    schedule = verbs.add_parser("schedule", help="where pods would go, without creating them")
    schedule.add_argument("--dry-run", action="store_true", help="only ask (there is no other way)")
    schedule.add_argument(
        "-f", "--file", metavar="FILE", action="append", required=True,
        help="pods, or what makes pods; - reads standard input",
    )  # fmt: skip
    schedule.add_argument(
        "--cluster", metavar="FILE", default="", help="a saved cluster instead of the live one"
    )
    for item in (why, schedule):
        item.add_argument("-n", "--namespace", default="default", help="default: %(default)s")
        item.add_argument("--kubeconfig", metavar="FILE", default="", help="default: as kubectl")


def _add_up(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    up = _verb(verbs, "up", "start a cluster")
    add = up.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="write the kubeconfig here, too")
    add("--bind-address", metavar="IP", default="127.0.0.1", help="default: %(default)s")
    add(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help="of the API server; 0 takes any free one (default: %(default)s)",
    )
    add(
        "--store",
        metavar="URL",
        default="",
        help="memory:, sqlite:////absolute/path or etcd://host:port,host:port/prefix (with TLS: "
        "?cacert=FILE&cert=FILE&key=FILE); default: SQLite in the data dir",
    )
    add(
        "--runtime",
        choices=("auto", "cri", "simulated", "none"),
        default="auto",
        help="auto: a private containerd where it is installed, else simulated nodes; "
        "cri: a real one or nothing; none: control plane only",
    )
    add("--nodes", metavar="N", type=_count, default=1, help="how many simulated nodes")
    add("--cri-socket", metavar="PATH", default="", help="use a runtime that already runs")
    add("--scheduler", type=_truth, default=True, metavar="BOOL",
        help="false: yours takes its place (default: true)")  # fmt: skip
    add(
        "--scheduler-config",
        metavar="FILE",
        default="",
        help="a KubeSchedulerConfiguration: profiles, plugins, extenders",
    )
    _add_node(up)
    add("--config", metavar="FILE", default="",
        help="a ClusterConfiguration: any of these flags, as camelCase: value")  # fmt: skip
    add("--detach", action="store_true", help="go to the background when ready")
    add("--ready-file", metavar="FILE", default="", help="written when the cluster is ready")
    add(
        "--keep-pods",
        action="store_true",
        help="leave containers running when sampan stops; the next start adopts them",
    )
    _controllers(up)
    _log_level(up)
    security.add_flags(up)
    # For --detach: where the child says that it is ready, or why it is not.
    add("--ready-fd", type=int, default=-1, help=argparse.SUPPRESS)


def _add_kubelet(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    kubelet = _verb(verbs, "kubelet", "run one node, with an API server elsewhere or with none")
    add = kubelet.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="the API server to join, and who we are")
    add("--join", metavar="DIR", default="", help="the data dir of a cluster on this machine")
    add("--bootstrap-kubeconfig", metavar="FILE", default="",
        help="the API server to join, and a token to ask for a certificate with")  # fmt: skip
    _add_node_process(kubelet)
    join = _verb(verbs, "join", "make this machine a node of a cluster elsewhere")
    join.add_argument("server", metavar="https://ADDRESS:PORT", help="its API server")
    join.add_argument("--token", required=True, help="as `sampan token create` printed it")
    join.add_argument("--ca-hash", required=True, metavar="sha256:HEX",
                      help="the fingerprint of the cluster's authority, likewise")  # fmt: skip
    join.set_defaults(kubeconfig="", join="", bootstrap_kubeconfig="joining")
    _add_node_process(join)
    token = _verb(verbs, "token", "print the line that another machine joins with")
    token.add_argument("action", choices=("create",))

    text = "run the service proxy of this machine, with an API server elsewhere"
    proxy = verbs.add_parser("service-proxy", help=text, description=text)
    add = proxy.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="the API server, and who we are")
    add("--node-name", metavar="NAME", default="", help="default: the host's name")
    add("--cluster-cidr", metavar="CIDR,…", type=_names, default=(),
        help="of pods: connections from elsewhere are masqueraded (default: none are)")  # fmt: skip
    add("--service-cidr", metavar="CIDR,…", type=_names, default=(),
        help="what no Service takes of these is refused (default: it goes on)")  # fmt: skip
    add("--ready-file", metavar="FILE", default="", help="written when the rules are there")
    _log_level(proxy)


def _add_node_process(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_node(parser)
    add("--runtime", choices=("cri", "simulated"), default="cri", help="default: %(default)s")
    add("--cri-socket", metavar="PATH", default="", help="use a runtime that already runs")
    add("--port", type=_port, default=10250, help="of the node's own HTTP server")
    add("--manifest-url", metavar="URL", default="", help="static pods from here, too")
    add("--manifest-url-header", metavar="KEY:VALUE", type=_header, action="append", default=[],
        help="to send with it; may be given again")  # fmt: skip
    add("--register-node", type=_truth, default=True, metavar="BOOL",
        help="make the Node object (default: true)")  # fmt: skip
    add("--node-labels", metavar="K=V,…", type=_labels, default={}, help="of a new node")
    add("--register-with-taints", metavar="K=V:EFFECT,…", type=_taints, default=[],
        help="of a new node")  # fmt: skip
    add("--tls-cert-file", metavar="FILE", default="", help="what the node's HTTP server shows")
    add("--tls-private-key-file", metavar="FILE", default="", help="its key")
    add("--client-ca-file", metavar="FILE", default="", help="who may call the node's HTTP server")
    add("--stop-pods", action="store_true", help="stop containers when the node stops")
    add("--ready-file", metavar="FILE", default="", help="written when the node is started")
    _log_level(parser)


def _add_controllers(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "run the controllers, with an API server elsewhere"
    controllers = verbs.add_parser("controllers", help=text, description=text)
    add = controllers.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="the API server, and who we are")
    _controllers(controllers)
    add("--leader-elect", type=_truth, default=True, metavar="BOOL",
        help="work only while no other process does (default: true)")  # fmt: skip
    add("--root-ca-file", metavar="FILE", default="",
        help="what pods verify the API server with (default: the kubeconfig's)")  # fmt: skip
    add("--cluster-signing-cert-file", metavar="FILE", default="", help="signs certificates")
    add("--cluster-signing-key-file", metavar="FILE", default="", help="its key")
    add(
        "--service-account-private-key-file",
        metavar="FILE",
        default="",
        help="signs the tokens that secrets hold",
    )
    add("--cluster-cidr", metavar="CIDR,…", type=_names, default=(),
        help="nodes get their podCIDR from here (default: from nobody)")  # fmt: skip
    add("--ready-file", metavar="FILE", default="", help="written when it is started")
    _log_level(controllers)


class _Names(argparse.Action):
    """A list that may be given in pieces: the first one takes the place of the default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        kept = () if before is self.default else before
        setattr(namespace, self.dest, (*kept, *_names(values)))


def _controllers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--controllers",
        metavar="NAMES",
        action=_Names,
        default=("*",),
        help="which ones: * is all, foo that one, -foo not that one, -* none (default: *)",
    )


def _add_node(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--node-name", metavar="NAME", type=_node_name, default="", help="default: the host's name")
    add("--node-ip", metavar="IP", default="", help="default: found by itself")
    add("--manifests", metavar="DIR", default="", help="static pods: a directory, or one file")
    add("--kubelet-config", metavar="FILE", default="",
        help="a KubeletConfiguration: eviction, image garbage, logs, reports")  # fmt: skip
    add("--network", choices=("auto", "host-gw", "vxlan"), default="auto",
        help="to other nodes' pods: routes (host-gw), a tunnel (vxlan), or routes where nodes are "
        "on one network and tunnels elsewhere (default: auto)")  # fmt: skip
    node_flags.add_flags(parser)


def _log_level(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="default: %(default)s",
    )


def _verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=text)
    _data_dir(parser)
    return parser


def _data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir", metavar="DIR", default=DEFAULT_DATA_DIR, help="default: %(default)s"
    )


def _node_name(text: str) -> str:
    from sampan.api.rules.names import dns_subdomain

    complaints = dns_subdomain(text) if text else ()
    if complaints:
        raise argparse.ArgumentTypeError(f"{text!r} is no node's name: {complaints[0]}")
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes (1 or more)")
    return int(text)


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"


def _header(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY:VALUE")
    return key.strip(), value.strip()


def _labels(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not key or not equals for key, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE,…")
    return {key: value for key, _, value in pairs}


def _taints(text: str) -> list[dict[str, str]]:
    taints = []
    for part in text.split(","):
        told, colon, effect = part.rpartition(":")
        key, _, value = told.partition("=")
        if not colon or not key or effect not in TAINT_EFFECTS:
            raise argparse.ArgumentTypeError(f"{part!r} is not KEY=VALUE:EFFECT")
        taints.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    return taints


if __name__ == "__main__":
    sys.exit(main())
