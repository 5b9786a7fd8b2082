"""The test kit's figures: clusters per second, their memory, virtual time, forks, what is left."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path

from sampan.cmd.snapshot.snapshot_file import Snapshot, write
from sampan.testing import cluster
from tests.support.parts.kit_remains import remains
from tests.support.parts.sampan_process import environment, sampan_command
from tests.support.worlds.repeated_story import digest, story

from .record import append, print_row

CLUSTERS = 1000
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
TESTS = """
    import pytest

    @pytest.mark.parametrize("number", range(100))
    def test_it(sampan, number):
        sampan.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
        assert sampan.get("cm/c")["metadata"]["name"] == "c"
"""


def ready():
    took = []
    began = time.perf_counter()
    with cluster():
        first = time.perf_counter() - began
    for _ in range(100):
        began = time.perf_counter()
        with cluster():
            took.append((time.perf_counter() - began) * 1000)
    cuts = statistics.quantiles(took, n=100)
    found = {"first test cluster, s": first}
    return found | {"test cluster ready p50, ms": cuts[49], "test cluster ready p99, ms": cuts[98]}


def memory():
    def own(pid):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return sum(map(int, re.findall(r"^Private_\w+: +(\d+)", text, re.M))) / 1024

    with cluster() as c:
        c.get("cm/kube-root-ca.crt")
        asked = own(c.pid)
        c.apply(DEPLOYMENT)
        c.assert_ready("deploy/web")
        return {
            "memory of a test cluster that was asked, MiB": asked,
            "memory of a test cluster with a Deployment, MiB": own(c.pid),
        }


def hundred_tests():
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "test_it.py").write_text(textwrap.dedent(TESTS))
        source = str(Path(__file__).parents[2] / "src")
        installed = any(point.name == "sampan" for point in entry_points(group="pytest11"))
        plugin = [] if installed else ["-p", "sampan.testing.pytest_plugin"]
        words = [*plugin, "-p", "no:cacheprovider", "-q", "-n", "2"]
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=directory, check=True, env={**os.environ, "PYTHONPATH": source}, timeout=300,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return {"100 tests each with its cluster, 2 workers, s": time.perf_counter() - began}


def nightly(number):
    return f"{number % 60} {number % 24} * * *"


def mixed(number):
    """Of a hundred: five each hour, ten on one night of the week, the others each night."""
    if number % 20 == 0:
        return f"{number % 60} * * * *"
    return f"{number % 60} {number % 6} * * {number % 7 if number % 10 == 1 else '*'}"


def hourly(number):
    return f"{number % 60} * * * *"


def week(schedule):
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    crons = [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": f"c{number}"},
            "spec": {
                "schedule": schedule(number),
                "jobTemplate": {"spec": {"template": {"spec": pod}}},
            },
        }
        for number in range(100)
    ]
    with cluster(clock="virtual") as c:
        c.apply(crons)
        began = time.perf_counter()
        c.clock.advance("7d")
        took = time.perf_counter() - began
        done = [cron["status"].get("lastSuccessfulTime") for cron in c.list("cronjobs")]
        assert None not in done
    return took


def weeks():
    with cluster(clock="virtual") as c:
        began = time.perf_counter()
        c.clock.advance("7d")
        idle = time.perf_counter() - began
    return {
        "a virtual week of an idle cluster, s": idle,
        "a virtual week with 100 daily cronjobs, s": week(nightly),
        "a virtual week with 100 cronjobs: 5 hourly, 85 nightly, 10 weekly, s": week(mixed),
        "a virtual week with 100 hourly cronjobs, s": week(hourly),
    }


def histories():
    """The same seed, fifty times: how many stories there are."""
    return {
        "different histories of one seed in 50 runs": len({digest(story(7)) for _ in range(50)})
    }


def forks():
    with cluster(nodes=0) as c:
        for number in range(10_000):
            meta = {"name": f"c{number}"}
            c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        took = []
        for _ in range(5):
            began = time.perf_counter()
            with c.fork() as other:
                took.append((time.perf_counter() - began) * 1000)
                assert len(other.list("cm")) == 10_001
    return {"fork of a cluster with 10000 objects p50, ms": statistics.median(took)}


def forks_by_command():
    """`sampan fork`, from the command to the prompt: of a snapshot, then of the running cluster."""
    made = {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v" * 50},
         "metadata": {**made, "name": f"c{number}", "namespace": "default"}}
        for number in range(10_000)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as directory, ExitStack() as undo:
        root = Path(directory)
        write(root / "s.snapshot", Snapshot(objects))

        def seconds(to, *words):
            command = sampan_command("fork", "--to", str(root / to), *words)
            began = time.perf_counter()
            subprocess.run(command, check=True, env=environment(), stdout=subprocess.DEVNULL)
            undo.callback(end, root / to)
            return time.perf_counter() - began

        def end(path):
            down = sampan_command("down", "--data-dir", str(path))
            subprocess.run(down, check=True, env=environment(), stdout=subprocess.DEVNULL)

        snapshot = seconds("first", "--snapshot", str(root / "s.snapshot"))
        running = [seconds(name, "--data-dir", str(root / "first")) for name in "abc"]
    return {
        "sampan fork of a snapshot of 10000 objects, s": snapshot,
        "sampan fork of a running cluster with 10000 objects, s": statistics.median(running),
    }


def left():
    """After a thousand clusters: threads, descriptors, files, processes."""
    with cluster():
        pass
    before = remains()
    for _ in range(CLUSTERS):
        with cluster() as c:
            c.get("cm/kube-root-ca.crt")
    until = time.monotonic() + 60
    while (found := remains() - before) and time.monotonic() < until:
        time.sleep(0.1)  # the last process may still be ending
    return {f"left after {CLUSTERS} test clusters": found.total()}


def main():
    row = {}
    for part in (ready, memory, hundred_tests, weeks, histories, forks, forks_by_command, left):
        row |= part()
        print(part.__name__, flush=True)
    print_row(row)
    append(row)


if __name__ == "__main__":
    main()
