"""The same pods on a node without containerd, in the same run."""

import asyncio
import statistics
import time
from pathlib import Path

from sampan.client import kubeconfig, rest
from sampan.client.contract import Client
from sampan.core.clock import Clock, SystemClock
from sampan.kubelet.containerd.pause_image import pause_archive
from sampan.testing.parts.native_runtime import why_not
from sampan.testing.parts.sampan_process import SampanProcess
from tests.bench.node_streams import MANY, many_at_once
from tests.bench.pod_life import api_life

FULL = 110  # as many pods as a node takes
STARTS = 3


def native_figures(workspace: Path, rounds: int) -> dict[str, float]:
    """Nothing where crun or conmon is missing."""
    if why_not():
        return {}
    cluster = SampanProcess(workspace, "--runtime", "native")
    again = []
    try:
        cluster.up()
        for _ in range(STARTS):
            cluster.stop()
            began = time.monotonic()
            cluster.up()
            again.append(time.monotonic() - began)
        archive = workspace / "pause.tar"
        archive.write_bytes(pause_archive())
        cluster.run("image", "import", str(archive))
        return {
            "native: start again to Ready, s": statistics.median(again),
            **asyncio.run(_pods(cluster, rounds)),
        }
    finally:
        cluster.stop()
        cluster.reset()


async def _pods(cluster: SampanProcess, rounds: int) -> dict[str, float]:
    clock = SystemClock()
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    client = rest.connect(connection, clock=clock)
    try:
        await api_life(client, "native-first", clock)
        lives = [await api_life(client, f"native-{number}", clock) for number in range(rounds)]
        many = [await many_at_once(client, clock) for _ in range(2)]
        full = await _full_node(cluster, client, clock)
    finally:
        await client.close()
    return {
        "native: create→Running p50, ms": 1000 * statistics.median(one.to_running for one in lives),
        "native: delete→gone p50, ms": 1000 * statistics.median(one.to_gone for one in lives),
        f"native: {MANY} at once create→Running, s": min(took for took, _ in many),
        f"native: {MANY} at once delete→gone, s": min(took for _, took in many),
        **full,
    }


async def _full_node(cluster: SampanProcess, client: Client, clock: Clock) -> dict[str, float]:
    before, there = _memory_bytes(cluster), 0

    def look() -> None:
        nonlocal there
        there = _memory_bytes(cluster)

    up, gone = await many_at_once(client, clock, FULL, look)
    return {
        f"native: {FULL} at once create→Running, s": up,
        f"native: {FULL} at once delete→gone, s": gone,
        "native: memory per pod, MiB": (there - before) / FULL / (1 << 20),
    }


def _memory_bytes(cluster: SampanProcess) -> int:
    """Of sampan and of the monitors of its containers; shared pages are counted once."""
    found = _proportional_bytes(Path(f"/proc/{cluster.pid}"))
    word = str(cluster.data_dir).encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if b"conmon\0" in command and word in command:
            found += _proportional_bytes(process)
    return found


def _proportional_bytes(process: Path) -> int:
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)
