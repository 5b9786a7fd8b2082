"""Verbs around a cluster on its machine: `service`, `upgrade`, `config explain`, `node`."""

import argparse
import os

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import common, defaults


def add_verbs(verbs: common.Verbs) -> None:
    service = verbs.add_parser("service", help="a cluster that systemd starts with the machine")
    actions = service.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser("install", help="write the unit, start it now and at every boot")
    common.data_dir(install)
    install.add_argument("--print", dest="only_print", action="store_true", help="only show it")
    install.add_argument("flags", metavar="-- FLAGS", nargs="*", help="of `sampan up`")
    uninstall = actions.add_parser("uninstall", help="stop it, and remove the unit; data stays")
    common.data_dir(uninstall)
    uninstall.set_defaults(only_print=False, flags=[])
    _add_node(verbs)
    text = "may this version go on with a cluster's data? `--to`: it becomes another Kubernetes"
    upgrade = common.verb(verbs, "upgrade", text)
    upgrade.add_argument("--config", metavar="FILE", default="", help="check this, too")
    upgrade.add_argument("--to", metavar="MINOR", default="", help="Kubernetes: 1.36, 1.37, …")
    upgrade.add_argument("--dry-run", action="store_true", help="of --to: only say what changes")
    text = "of --to: the EncryptionConfiguration that the cluster is started with"
    upgrade.add_argument("--encryption-provider-config", metavar="FILE", default="", help=text)
    config = verbs.add_parser("config", help="explain: the settings of `sampan up --config`")
    parts = config.add_subparsers(dest="action", metavar="ACTION", required=True)
    explain = parts.add_parser("explain", help="each setting: type, meaning, variable")
    explain.add_argument("setting", nargs="?", default="", help="only this one")
    explain.add_argument("--schema", action="store_true", help="as a JSON schema")


def _add_node(verbs: common.Verbs) -> None:
    text = "real nodes of this machine: let one join, fail, come back or go"
    node = verbs.add_parser("node", help=text, description=text)
    actions = node.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, what in {
        "add": "another one joins (without NAME: the next one)",
        "remove": "it stops with its pods, and goes",
        "cut": "it loses its network; agent and pods go on, alone",
        "mend": "it has its network again",
        "kill": "its power fails: agent and containers end without a word",
        "start": "one that was killed comes back",
    }.items():
        parser = actions.add_parser(action, help=what)
        count = "?" if action == "add" else None
        parser.add_argument("node", metavar="NAME", nargs=count, default="", help="of the node")
        parser.add_argument("--kubeconfig", metavar="FILE", default="", help="default: as kubectl")
        common.cluster_name(parser)


def parser_of_up(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    [verbs] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    up: argparse.ArgumentParser = verbs.choices["up"]
    return up


def problems_of(parser: argparse.ArgumentParser, path: str) -> list[str]:
    """What this version does not take of a configuration file."""
    if not path:
        return []
    try:
        words = defaults.arguments(parser_of_up(parser), [f"--config={path}"], {})
        parser.parse_args(["up", *words])
    except CannotStart as error:
        return [str(error)]
    except SystemExit:  # a value that is none: argparse has said so
        return [f"{path} has a value that this version does not take"]
    return []


def check_up_flags(parser: argparse.ArgumentParser, flags: list[str]) -> None:
    """A mistake is said when the service is installed, not at the next boot."""
    up = parser_of_up(parser)
    parser.parse_args(["up", *defaults.arguments(up, flags, os.environ), *flags])
