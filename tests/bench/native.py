"""The same pods on a node without containerd, in the same run, beside the runtime's own calls."""

import asyncio
import os
import statistics
import time
from pathlib import Path

from sampan.client import kubeconfig, rest
from sampan.client.contract import Client
from sampan.core.clock import Clock, SystemClock
from sampan.kubelet.images.pause_image import pause_archive
from tests.bench.node_streams import MANY, many_at_once
from tests.bench.pod_life import ApiLife, api_life, p90
from tests.bench.raw_cri import PodLife, median, pod_life
from tests.support.parts.native_runtime import import_image, native_runtime, why_not
from tests.support.parts.sampan_process import SampanProcess

FULL = 110  # as many pods as a node takes
STARTS = 3
IDLE_AFTER_SECONDS = 10.0


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
        time.sleep(IDLE_AFTER_SECONDS)
        idle = _memory_bytes(cluster) / (1 << 20)
        archive = workspace / "pause.tar"
        archive.write_bytes(pause_archive())
        cluster.run("image", "import", str(archive))
        return {
            "native: start again to Ready, s": statistics.median(again),
            "native: idle PSS, MiB": idle,
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
        lives, floor, cpu = await _turn_by_turn(cluster, client, clock, rounds)
        many = [await many_at_once(client, clock) for _ in range(2)]
        full = await _full_node(cluster, client, clock)
    finally:
        await client.close()
    return {
        "native: create→Running p50, ms": 1000 * statistics.median(one.to_running for one in lives),
        "native: create→Running p90, ms": 1000 * p90([one.to_running for one in lives]),
        "native: create→Running floor p50, ms": 1000 * floor.to_running,
        "native: delete→gone p50, ms": 1000 * statistics.median(one.to_gone for one in lives),
        "native: stop floor p50, ms": 1000 * (floor.stop + floor.stop_sandbox),
        "native: CPU of sampan per pod, ms": 1000 * cpu / rounds,
        f"native: {MANY} at once create→Running, s": min(took for took, _ in many),
        f"native: {MANY} at once delete→gone, s": min(took for _, took in many),
        **full,
    }


async def _turn_by_turn(
    cluster: SampanProcess, client: Client, clock: Clock, rounds: int
) -> tuple[list[ApiLife], PodLife, float]:
    """Through the API, by the runtime's calls alone, and how many seconds of processor time all
    lives through the API took. Both meet the same minute of the machine."""
    directory = cluster.root / "floor"
    directory.mkdir()
    lives, raw, cpu = [], [], 0.0
    async with native_runtime(directory) as runtime:
        import_image(runtime, cluster.root / "pause.tar")
        for number in range(rounds):
            raw.append(await pod_life(runtime, directory, clock, number))
            before = _cpu_seconds(cluster)
            lives.append(await api_life(client, f"native-{number}", clock))
            cpu += _cpu_seconds(cluster) - before
    return lives, median(raw), cpu


def _cpu_seconds(cluster: SampanProcess) -> float:
    """Of its own, without conmon and crun."""
    fields = Path(f"/proc/{cluster.pid}/stat").read_text().rpartition(")")[2].split()
    user, system = (int(field) for field in fields[11:13])
    return (user + system) / os.sysconf("SC_CLK_TCK")


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
