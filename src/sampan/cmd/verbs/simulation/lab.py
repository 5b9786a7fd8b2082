"""`sampan lab`: what a scheduler does with a stream of pods, on virtual time.

Job: run a workload under one scheduler configuration or two, and print the report; record a
    workload and its nodes from a live cluster.
Invariant: each trial is a process of its own; a mistake in a file is one sentence and exit code 1.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from sampan.api.objects import Obj
from sampan.cmd.errors import CannotStart
from sampan.cmd.lab import html_report, text_report
from sampan.cmd.lab.summary import report_of
from sampan.core.fast_dataclass import dataclass

DEFAULT_TITLE = "default scheduler"


@dataclass(frozen=True, slots=True)
class RunChoices:
    workload: str
    nodes: str
    scheduler_config: str = ""
    compare: str | None = None  # another configuration; empty: the default one
    seed: int | None = None
    output: str = "table"


def run(chosen: RunChoices) -> int:
    """Raises CannotStart."""
    configurations = [chosen.scheduler_config]
    if chosen.compare is not None:
        configurations.append(chosen.compare)
    trials = [_start(chosen, configuration) for configuration in configurations]
    reports = [
        report_of(_record(trial), title)
        for trial, title in zip(trials, _titles(configurations), strict=True)
    ]
    match chosen.output:
        case "json":
            shown: Any = reports[0] if len(reports) == 1 else reports
            print(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode())
        case "html":
            print(html_report.page(reports), end="")
        case _:
            print("\n".join(text_report.lines(reports)))
    return 0


def _titles(configurations: Sequence[str]) -> list[str]:
    return [Path(path).stem if path else DEFAULT_TITLE for path in configurations]


def _start(chosen: RunChoices, configuration: str) -> "subprocess.Popen[bytes]":
    settings = {
        "workload": chosen.workload, "nodes": chosen.nodes, "scheduler_config": configuration,
        "seed": chosen.seed,
    }  # fmt: skip
    command = [sys.executable, "-m", "sampan.cmd.lab.trial", orjson.dumps(settings).decode()]
    source = str(Path(__file__).parents[3])
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0",
    }  # fmt: skip
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )


def _record(trial: "subprocess.Popen[bytes]") -> Obj:
    """Raises CannotStart."""
    output, _ = trial.communicate()
    if trial.returncode != 0:
        raise CannotStart(f"the trial ended with {trial.returncode}")
    record: Obj = orjson.loads(output)
    if "error" in record:
        raise CannotStart(record["error"])
    return record


def record(kubeconfig_path: str, to: str, seconds: float) -> int:
    """Raises CannotStart, ApiError."""
    from sampan.cmd.lab.record import recorded

    documents = asyncio.run(recorded(kubeconfig_path, seconds))
    directory = Path(to)
    directory.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        (directory / name).write_text(yaml.safe_dump(document, sort_keys=False))
        print(directory / name)
    return 0
