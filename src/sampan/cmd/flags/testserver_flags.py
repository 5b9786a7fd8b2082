"""Flags of `sampan testserver`, and those that its `kube-apiserver` has beside an API server's."""

import argparse
import os
from collections.abc import Sequence

from sampan.cmd.flags import common, release_flags, scenario, stages, values
from sampan.cmd.settings import Beside

ALL_CONTROLLERS = ("*",)
FEW_CONTROLLERS = Beside().controllers


def add_testserver(verbs: common.Verbs) -> None:
    text = "an API server in memory for tests, as envtest wants one"
    testserver = verbs.add_parser("testserver", help=text, description=text)
    testserver.add_argument("--kubeconfig", metavar="FILE", default="", help="write it here, too")
    testserver.add_argument(
        "--assets", metavar="DIR", default="",
        help="only write kube-apiserver, etcd and kubectl there: $KUBEBUILDER_ASSETS of envtest",
    )  # fmt: skip
    _add_beside(testserver)
    release_flags.add_flags(testserver)


def beside_in(arguments: Sequence[str]) -> tuple[Beside, list[str]]:
    """What is wanted beside the API server, and the arguments that say nothing of it."""
    parser = argparse.ArgumentParser("kube-apiserver", add_help=False, allow_abbrev=False)
    _add_beside(parser)
    given, others = parser.parse_known_args(arguments)
    return beside_of(given), others


def beside_of(given: argparse.Namespace) -> Beside:
    controllers = given.controllers or (ALL_CONTROLLERS if given.nodes else FEW_CONTROLLERS)
    files = tuple(os.path.abspath(path) for path in given.stages)
    return Beside(controllers, given.nodes, given.simulated_scenario, files)


def words_of(beside: Beside) -> list[str]:
    """As `beside_in` reads them."""
    words = []
    if beside.controllers != FEW_CONTROLLERS:
        words.append(f"--controllers={','.join(beside.controllers)}")
    if beside.nodes:
        words.append(f"--nodes={beside.nodes}")
    if beside.scenario:
        words.append(f"{scenario.FLAG}={beside.scenario}")
    return [*words, *(f"{stages.FLAG}={path}" for path in beside.stages)]


def _add_beside(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--controllers", metavar="NAMES", type=values.names, default=(),
        help="which ones: * is all, foo that one, -foo not that one (default: * with nodes, else "
        "those of namespaces, owners and aggregated roles)",
    )  # fmt: skip
    parser.add_argument(
        "--nodes", metavar="N", type=values.count, default=0,
        help="so many simulated nodes, with the scheduler: pods run, as far as the API can tell",
    )  # fmt: skip
    parser.add_argument(scenario.FLAG, metavar="FILE", default="", help=scenario.HELP)
    parser.add_argument(stages.FLAG, metavar="PATH", action="append", default=[], help=stages.HELP)
