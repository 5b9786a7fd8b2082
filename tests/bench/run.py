"""`make bench`: figures of a real cluster, each beside a floor that was measured in the same run.

Job: run, print a table, append a row to docs/bench.csv.
    Figures are for people: nothing is asserted.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from sampan.kubelet.containerd.config import layout
from tests.bench.agent_overhead import overheads
from tests.bench.api import few_figures
from tests.bench.commands import command_figures
from tests.bench.csi import csi_figures
from tests.bench.native import native_figures
from tests.bench.node_streams import (
    MANY,
    WEB_PORT,
    many_at_once,
    many_raw,
    stream_figures,
)
from tests.bench.pod_life import both_lives, p90, steps_of
from tests.bench.record import append
from tests.bench.traces import tracing_figures
from tests.bench.usage import cpu_seconds, our_processes, pss_mib
from tests.support.parts.images import busybox_archive
from tests.support.parts.private_runtime import private_runtime
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

IDLE_SECONDS = 20.0


def main() -> int:
    parser = argparse.ArgumentParser(description="figures of a real cluster")
    parser.add_argument("--rounds", type=int, default=20, help="pods (default: %(default)s)")
    parser.add_argument("--no-csv", action="store_true", help="print only")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("make bench runs real containers: it needs root", file=sys.stderr)
        return 1
    workspace = Path(tempfile.mkdtemp(prefix="sampan-bench-"))
    cluster = SampanProcess(workspace, "--runtime", "cri")
    try:
        row = figures(cluster, workspace, given.rounds)
    finally:
        cluster.reset()
        shutil.rmtree(workspace)
    _print(row)
    if not given.no_csv:
        append(row)
    return 0


def figures(cluster: SampanProcess, workspace: Path, rounds: int) -> dict[str, float]:
    say = lambda text: print(f"… {text}", file=sys.stderr, flush=True)  # noqa: E731
    say("starting on a new data directory")
    first = _timed_start(cluster)
    cluster.stop()
    say("starting again, three times")
    again, again_cpu = [], []
    for _ in range(3):
        again.append(_timed_start(cluster))
        again_cpu.append(cpu_seconds([cluster.pid]))
        cluster.stop()
    _timed_start(cluster)
    say(f"{rounds} pods through the API and {rounds} through raw CRI calls, in turn")
    row = asyncio.run(_pods(cluster, workspace / "floor", rounds))
    say("commands and logs of one container")
    row |= _streams(cluster, workspace)
    say("the client's commands, and kubectl's")
    row |= command_figures(cluster.kubeconfig, workspace / "home")
    say(f"idle for {IDLE_SECONDS:.0f} s")
    row |= _idle(cluster)
    cluster.stop()
    say(f"what the node agent itself takes of {rounds} pods")
    row |= asyncio.run(overheads(workspace / "agent", rounds))
    say("what tracing costs")
    row |= tracing_figures()
    say("a list from the cache and a deletecollection")
    row |= few_figures(workspace / "api")
    say(f"{rounds} pods without containerd")
    row |= native_figures(workspace / "native", rounds)
    say(f"{rounds} pods with volumes, of csi.sampan.dev and of the node")
    row |= csi_figures(workspace / "csi", rounds)
    return {
        "first start to Ready, s": first,
        "start again to Ready, s": statistics.median(again),
        "start again to Ready, s of processor time": min(again_cpu),
        **row,
    }


def _streams(cluster: SampanProcess, workspace: Path) -> dict[str, float]:
    kubectl, image = cluster.kubectl, "localhost/bench/busybox:1"
    cluster.run("image", "import", str(busybox_archive(workspace / "busybox.tar", image)))
    text = (
        f"mkdir /www; head -c 50000000 /dev/zero >/www/big; httpd -p {WEB_PORT} -h /www; "
        "seq 1 85000 | sed s/^/a-line-of-some-length-as-programs-write-them-/; sleep 3600"
    )
    kubectl("run", "talks", f"--image={image}", "--command", "--", "sh", "-c", text)
    kubectl("wait", "--for=condition=Ready", "pod/talks", "--timeout=60s")
    eventually(lambda: kubectl("logs", "talks", "--tail=1").endswith("-85000\n"))
    socket_path = str(layout(cluster.data_dir).socket)
    row = stream_figures(cluster, socket_path, kubectl.get("pod", "talks"))
    kubectl("delete", "pod", "talks", "--grace-period=0", "--force")
    return row


def _timed_start(cluster: SampanProcess) -> float:
    began = time.monotonic()
    cluster.up()
    return time.monotonic() - began


def _idle(cluster: SampanProcess) -> dict[str, float]:
    ours = our_processes(cluster.pid)
    before = cpu_seconds(ours)
    time.sleep(IDLE_SECONDS)
    return {
        "idle PSS, MiB": pss_mib(ours),
        "idle CPU, % of a core": 100 * (cpu_seconds(ours) - before) / IDLE_SECONDS,
    }


async def _pods(cluster: SampanProcess, floor: Path, rounds: int) -> dict[str, float]:
    clock = SystemClock()
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    client = rest.connect(connection, clock=clock)
    # A containerd of its own for the floor: the cluster's node agent would remove unknown pods.
    try:
        async with private_runtime(floor) as node:
            socket_path = node.daemon.socket_path
            # The first pod of each pays for what only a first one pays for.
            await both_lives(client, socket_path, floor, clock, 1)
            api, raw = await both_lives(client, socket_path, floor, clock, rounds)
            many, many_floor = [], []
            for _ in range(2):
                many_floor.append(await many_raw(socket_path, floor, clock))
                many.append(await many_at_once(client, clock))
    finally:
        await client.close()
    print(f"… raw CRI steps at the median, ms: {steps_of(raw)}", file=sys.stderr)
    row: dict[str, float] = {}
    for name, ours, theirs in (
        ("create→Running", [one.to_running for one in api], [one.to_running for one in raw]),
        ("delete→gone", [one.to_gone for one in api], [one.to_gone for one in raw]),
    ):
        row[f"{name} p50, ms"] = 1000 * statistics.median(ours)
        row[f"{name} p90, ms"] = 1000 * p90(ours)
        row[f"{name} floor p50, ms"] = 1000 * statistics.median(theirs)
        row[f"{name} ÷ floor"] = statistics.median(ours) / statistics.median(theirs)
    for name, step in (("create→Running", 0), ("delete→gone", 1)):
        took, least = min(one[step] for one in many), min(one[step] for one in many_floor)
        row[f"{MANY} at once {name}, s"] = took
        row[f"{MANY} at once {name} floor, s"] = least
        row[f"{MANY} at once {name} ÷ floor"] = took / least
    return row


def _print(row: dict[str, float]) -> None:
    for name, value in row.items():
        print(f"{name:<46} {value:10.2f}")


if __name__ == "__main__":
    sys.exit(main())
