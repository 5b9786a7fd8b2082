"""`sampan lab` and `sampan clock`: their flags."""

import argparse

from sampan.api.rules.durations import long_seconds
from sampan.cmd.flags import common, scenario
from sampan.core.durations import DurationError

FORMATS = ("table", "json", "html")


def add_verbs(verbs: common.Verbs) -> None:
    _add_lab(verbs)
    _add_clock(verbs)


def _add_clock(verbs: common.Verbs) -> None:
    text = "show and move the time of a cluster with --clock virtual"
    clock = verbs.add_parser("clock", help=text, description=text)
    _connection(clock, "")
    actions = clock.add_subparsers(dest="action", metavar="ACTION")
    advance = actions.add_parser("advance", help="everything due until then happens, in order")
    advance.add_argument("duration", metavar="DURATION", help="such as 24h, 1h30m, 7d")
    advance.add_argument(
        "--settle", action="store_true", help="return when clients are quiet after it, too"
    )
    step = actions.add_parser("step", help="from timer to timer until something is written")
    step.add_argument("duration", metavar="MOST", help="at most so far, such as 10m")
    settle = actions.add_parser("settle", help="until nobody has anything to do now")
    for action in (advance, step, settle):
        add = action.add_argument
        add("--client", action="append", default=[], metavar="NAME",
            help="time does not move before a client with this in its User-Agent watches; "
                 "repeatable")  # fmt: skip
        add("--patience", default="", metavar="DURATION",
            help="so long, by the machine's time, one that is never quiet holds a step up "
                 "(default: 10s)")  # fmt: skip
        _connection(action, argparse.SUPPRESS)


def _connection(parser: argparse.ArgumentParser, default: str) -> None:
    """Before the action or behind it."""
    parser.add_argument(
        "--kubeconfig", metavar="FILE", default=default, help="default: as kubectl finds it"
    )
    parser.add_argument(
        "--name", dest="cluster_name", metavar="NAME", default=default, help="of the cluster"
    )


def _add_lab(verbs: common.Verbs) -> None:
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
