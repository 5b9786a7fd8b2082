"""What the flags of several verbs have in common.

Job: a verb's parser, and the flags that mean the same wherever they are.
"""

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

from sampan.cmd.flags import values
from sampan.cmd.settings import DEFAULT_DATA_DIR

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Add = Callable[..., Any]  # a parser's add_argument


def verb(verbs: Verbs, name: str, text: str) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=text)
    data_dir(parser)
    return parser


def node_verb(verbs: Verbs, name: str, text: str) -> argparse.ArgumentParser:
    """Of a node by itself: it is no cluster, and has no cluster's name."""
    parser = verbs.add_parser(name, help=text, description=text)
    parser.add_argument(
        "--data-dir", metavar="DIR", default=DEFAULT_DATA_DIR, help="default: %(default)s"
    )
    return parser


def data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir", metavar="DIR", default="",
        help="default: ./sampan-data where it exists, else that of the name",
    )  # fmt: skip
    cluster_name(parser)


def cluster_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--name", dest="cluster_name", metavar="NAME", default="",
        help="of the cluster, where there are several (`sampan list`); its data is in the state "
        "directory: ~/.local/state/sampan/NAME",
    )  # fmt: skip


def log_level(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="default: %(default)s",
    )


def controllers(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--controllers",
        metavar="NAMES",
        action=_Names,
        default=("*",),
        help="which ones: * is all, foo that one, -foo not that one, -* none (default: *)",
    )


class _Names(argparse.Action):
    """A list that may be given in pieces: the first one takes the place of the default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        given: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        kept = () if before is self.default else before
        setattr(namespace, self.dest, (*kept, *values.names(given)))
