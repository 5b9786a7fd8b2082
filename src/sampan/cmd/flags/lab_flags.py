"""`sampan lab`: its flags."""

import argparse

from sampan.api.rules.durations import long_seconds
from sampan.cmd.flags import common, scenario
from sampan.core.durations import DurationError

FORMATS = ("table", "json", "html")


def add_verb(verbs: common.Verbs) -> None:
    text = "what a scheduler does with a stream of pods, on virtual time"
    lab = verbs.add_parser("lab", help=text, description=text)
    actions = lab.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = actions.add_parser("run", help="run a workload on simulated nodes, and report")
    add = run.add_argument
    add("workload", metavar="WORKLOAD", help="a file: which pods come when (docs/lab.md)")
    add(scenario.NODES_FLAG, metavar="FILE", required=True, help=scenario.NODES_HELP)
    add("--scheduler-config", metavar="FILE", default="",
        help="a KubeSchedulerConfiguration; default: the default scheduler")  # fmt: skip
    add(
        "--compare",
        metavar="FILE",
        default=None,
        nargs="?",
        const="",
        help="run it under this configuration, too (without FILE: the default one), and compare",
    )
    add("--seed", type=int, default=None, metavar="N", help="instead of the workload's own")
    add("-o", "--output", choices=FORMATS, default="table", help="default: %(default)s")
    record = actions.add_parser("record", help="make the files of a live cluster's pods and nodes")
    add = record.add_argument
    add("--to", metavar="DIR", required=True, help="workload.yaml and nodes.yaml are written there")
    add(
        "--for",
        dest="seconds",
        type=_seconds,
        default=0.0,
        metavar="DURATION",
        help="watch for so long, for pods that come and go (default: only what is there)",
    )
    add("--kubeconfig", metavar="FILE", default="", help="default: as kubectl finds it")
    common.cluster_name(record)


def _seconds(text: str) -> float:
    try:
        return long_seconds(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
