"""Flags that say which Kubernetes a process is: its version, feature gates, served APIs.

Job: the flags, under upstream's names where it has them, and the choices that they make.
"""

import argparse

from sampan.cmd.settings import ReleaseChoices
from sampan.version import DEFAULT_MINOR, MINORS

_GROUP = "which Kubernetes (docs/guide/versions.md)"


def add_flags(parser: argparse.ArgumentParser, *, serves: bool = True) -> None:
    """`serves`: it has an API server."""
    add = parser.add_argument_group(_GROUP).add_argument
    default = f"as the cluster was before, else {DEFAULT_MINOR}" if serves else DEFAULT_MINOR
    there_are = f"{', '.join(MINORS[:-1])} or {MINORS[-1]}"
    add("--kubernetes-version", metavar="MINOR", default="",
        help=f"{there_are} (default: {default})")  # fmt: skip
    add("--feature-gates", metavar="A=BOOL,…", action="append", default=[],
        help="features that are on or off, beside the version's defaults (`sampan gates`); may be "
        "given again")  # fmt: skip
    if not serves:
        parser.set_defaults(runtime_config=[], emulated_version="")
        return
    add("--runtime-config", metavar="API=BOOL,…", action="append", default=[],
        help="APIs that are served or not: group/version, api/all, api/beta, api/alpha; may be "
        "given again")  # fmt: skip
    add("--emulated-version", metavar="MINOR", default="",
        help="have the features and APIs of this older version")  # fmt: skip


def choices(given: argparse.Namespace) -> ReleaseChoices:
    return ReleaseChoices(
        given.kubernetes_version,
        given.emulated_version,
        tuple(given.feature_gates),
        tuple(given.runtime_config),
    )
