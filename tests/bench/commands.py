"""How long a command takes: every verb's start, `get pods` beside kubectl's, a completion; and what
a test run pays for the kit."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sampan.cli import catalog
from sampan.cmd.help_screen import CLUSTER_VERBS

ROUNDS = 20


def command_figures(kubeconfig: Path, home: Path) -> dict[str, float]:
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has been compiled
    sampan = [sys.executable, "-m", "sampan"]
    starts = {
        verb: min(_took([*sampan, verb, "--help"], env) for _ in range(3))
        for verb in (*catalog.names(), *CLUSTER_VERBS)
    }
    slowest = max(starts, key=lambda verb: starts[verb])
    print(f"… the slowest verb to start is {slowest}", file=sys.stderr)
    ours, theirs, bare, completed, kit = [], [], [], [], []
    get = ("get", "pods", "-A")
    for command in ([*sampan, *get], ["kubectl", *get]):
        _took(command, env)  # discovery is kept from now on
    for _ in range(ROUNDS):
        ours.append(_took([*sampan, *get], env))
        theirs.append(_took(["kubectl", *get], env))
        bare.append(_took([sys.executable, "-c", "pass"], env))
        completed.append(_took([*sampan, "__complete", "get", "pods", ""], env))
        kit.append(_took([sys.executable, "-c", "import sampan.testing.kit.cluster"], env))
    return {
        "a verb's start p50, ms": 1000 * statistics.median(starts.values()),
        "the slowest verb's start, ms": 1000 * starts[slowest],
        "get pods p50, ms": 1000 * statistics.median(ours),
        "kubectl get pods p50, ms": 1000 * statistics.median(theirs),
        "get pods ÷ kubectl": statistics.median(ours) / statistics.median(theirs),
        "bare python p50, ms": 1000 * statistics.median(bare),
        "completion of pods p50, ms": 1000 * statistics.median(completed),
        "import of the test kit p50, ms": 1000 * statistics.median(kit),
    }


def _took(command: Sequence[str], env: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    for name, value in command_figures(Path(sys.argv[1]), Path(sys.argv[2])).items():
        print(f"{name:<36} {value:10.2f}")
