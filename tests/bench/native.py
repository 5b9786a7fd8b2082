"""The same pods on a node without containerd, in the same run."""

import asyncio
import statistics
import time
from pathlib import Path

from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from sampan.kubelet.containerd.pause_image import pause_archive
from sampan.testing.parts.native_runtime import why_not
from sampan.testing.parts.sampan_process import SampanProcess
from tests.bench.node_streams import MANY, many_at_once
from tests.bench.pod_life import api_life


def native_figures(workspace: Path, rounds: int) -> dict[str, float]:
    """Nothing where crun or conmon is missing."""
    if why_not():
        return {}
    cluster = SampanProcess(workspace, "--runtime", "native")
    try:
        cluster.up()
        cluster.stop()
        began = time.monotonic()
        cluster.up()
        again = time.monotonic() - began
        archive = workspace / "pause.tar"
        archive.write_bytes(pause_archive())
        cluster.run("image", "import", str(archive))
        return {"native: start again to Ready, s": again} | asyncio.run(_pods(cluster, rounds))
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
    finally:
        await client.close()
    return {
        "native: create→Running p50, ms": 1000 * statistics.median(one.to_running for one in lives),
        "native: delete→gone p50, ms": 1000 * statistics.median(one.to_gone for one in lives),
        f"native: {MANY} at once create→Running, s": min(took for took, _ in many),
        f"native: {MANY} at once delete→gone, s": min(took for _, took in many),
    }
