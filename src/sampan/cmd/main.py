"""The command line: flags become settings here, and nowhere else.

Job: parse, call the verb, print a failure as one clear line, and choose the exit code.
"""

import argparse
import sys
from collections.abc import Sequence

from sampan.cmd.settings import DEFAULT_DATA_DIR, DEFAULT_PORT, UpSettings
from sampan.version import GIT_VERSION, KUBERNETES_VERSION, VERSION

EXAMPLES = """\
examples:
  sampan up                                    a one-node cluster in the foreground; Ctrl-C stops it
  sampan up --detach --kubeconfig kubeconfig   in the background; returns when it is ready
  sampan up --runtime simulated --nodes 100    no containers: 100 simulated nodes
  sampan image import app.tar                  give the node an image without a registry
  sampan down                                  stop it
  sampan reset --yes                           remove everything, containers and network included
"""


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        return _dispatch(given)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141


def _dispatch(given: argparse.Namespace) -> int:
    # Each verb imports what it needs when it runs: `sampan version` must not pay for a cluster.
    match given.verb:
        case "up":
            from sampan.cmd import up

            return up.run(_up_settings(given), detach=given.detach, ready_fd=given.ready_fd)
        case "down":
            from sampan.cmd import down

            return down.run(given.data_dir)
        case "reset":
            from sampan.cmd import reset

            return reset.run(given.data_dir, confirmed=given.yes)
        case "image":
            from sampan.cmd import image

            return image.run(given.action, given.data_dir, getattr(given, "file", ""))
        case "version":
            print(f"sampan {VERSION} (Kubernetes {KUBERNETES_VERSION}, {GIT_VERSION})")
            return 0
        case _:
            _parser().print_help(sys.stderr)
            return 2


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
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sampan",
        description=f"A Kubernetes ({KUBERNETES_VERSION}) you can pip install.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    _add_up(verbs)
    _verb(verbs, "down", "stop a cluster")
    reset = _verb(verbs, "reset", "remove a cluster: data, containers, network")
    reset.add_argument("--yes", action="store_true", help="really do it")
    image = verbs.add_parser("image", help="the node's images")
    actions = image.add_subparsers(dest="action", metavar="ACTION", required=True)
    importing = actions.add_parser("import", help="load an OCI or docker archive")
    importing.add_argument("file", metavar="FILE", help="made by `docker save` or the like")
    _data_dir(importing)
    _data_dir(actions.add_parser("list", help="what is there"))
    verbs.add_parser("version", help="which sampan, which Kubernetes")
    return parser


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
        help="sqlite:////absolute/path or memory: (default: SQLite in the data dir)",
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
    add("--node-name", metavar="NAME", default="", help="default: the host's name")
    add("--node-ip", metavar="IP", default="", help="default: found by itself")
    add("--detach", action="store_true", help="go to the background when ready")
    add("--ready-file", metavar="FILE", default="", help="written when the cluster is ready")
    add(
        "--keep-pods",
        action="store_true",
        help="leave containers running when sampan stops; the next start adopts them",
    )
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="default: %(default)s",
    )
    # For --detach: where the child says that it is ready, or why it is not.
    add("--ready-fd", type=int, default=-1, help=argparse.SUPPRESS)


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


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes (1 or more)")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
