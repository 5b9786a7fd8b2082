"""Pods with volumes of csi.sampan.dev, beside the same pods without, and with those of `standard`.

Figures are wall time, and processor time of sampan and of the driver: on a machine that does other
things as well only the latter says something.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS
from sampan.client import kubeconfig, rest
from sampan.client.contract import Client
from sampan.core.clock import Clock, SystemClock
from sampan.kubelet.images.pause_image import pause_archive
from tests.bench.pod_life import api_life
from tests.bench.usage import children_of, cpu_seconds
from tests.support.parts.native_runtime import why_not
from tests.support.parts.sampan_process import SampanProcess

CLASSES = ("csi", "standard")
PODS, VOLUMES_OF_POD = 20, 10
IDLE_SECONDS = 20.0


@dataclass
class _Row:
    to_running: list[float]
    cpu: list[float]

    def told(self, name: str) -> dict[str, float]:
        return {
            f"{name} create→Running p50, ms": 1000 * statistics.median(self.to_running),
            f"{name} CPU per pod p50, ms": 1000 * statistics.median(self.cpu),
        }


def csi_figures(workspace: Path, rounds: int) -> dict[str, float]:
    """Nothing where crun or conmon is missing."""
    if why_not():
        return {}
    cluster = SampanProcess(workspace, "--runtime", "native", "--with", "csi")
    try:
        cluster.up()
        archive = workspace / "pause.tar"
        archive.write_bytes(pause_archive())
        cluster.run("image", "import", str(archive))
        return {**asyncio.run(_lives(cluster, rounds)), **_idle(cluster)}
    finally:
        cluster.stop()
        cluster.reset()


async def _lives(cluster: SampanProcess, rounds: int) -> dict[str, float]:
    clock = SystemClock()
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    client = rest.connect(connection, clock=clock)
    rows = {name: _Row([], []) for name in ("without", *CLASSES, *(f"new {c}" for c in CLASSES))}
    try:
        for kind in CLASSES:  # the first pod binds it
            await _claim(client, f"kept-{kind}", kind)
            await api_life(client, f"first-{kind}", clock, _volumes([f"kept-{kind}"]))
        for number in range(rounds):
            for name, row in rows.items():
                claims = []
                if name.startswith("new "):
                    claims = [f"{name.replace(' ', '-')}-{number}"]
                    await _claim(client, claims[0], name.removeprefix("new "))
                elif name != "without":
                    claims = [f"kept-{name}"]
                await _one(
                    cluster, client, clock, row, f"p-{name.replace(' ', '-')}-{number}", claims
                )
        many = await _many(cluster, client, clock)
    finally:
        await client.close()
    told = {}
    for name, row in rows.items():
        told |= row.told(f"volumes: {name}:")
    return {**told, **many}


async def _one(
    cluster: SampanProcess, client: Client, clock: Clock, row: _Row, name: str, claims: list[str]
) -> None:
    processes = _processes(cluster)
    before = cpu_seconds(processes)
    life = await api_life(client, name, clock, _volumes(claims))
    row.to_running.append(life.to_running)
    row.cpu.append(cpu_seconds(processes) - before)


async def _many(cluster: SampanProcess, client: Client, clock: Clock) -> dict[str, float]:
    """All at once: provisioned, bound, staged, published; and gone again."""
    names = [[f"many-{pod}-{number}" for number in range(VOLUMES_OF_POD)] for pod in range(PODS)]
    for claims in names:
        for claim in claims:
            await _claim(client, claim, "csi")
    processes = _processes(cluster)
    before = cpu_seconds(processes)
    async with asyncio.TaskGroup() as group:
        lives = [
            group.create_task(api_life(client, f"many-{number}", clock, _volumes(claims), 300.0))
            for number, claims in enumerate(names)
        ]
    count = PODS * VOLUMES_OF_POD
    return {
        f"volumes: {count} of csi provisioned and mounted, s": max(
            life.result().to_running for life in lives
        ),
        f"volumes: {count} of csi, CPU of each, ms": 1000
        * (cpu_seconds(processes) - before)
        / count,
    }


def _processes(cluster: SampanProcess) -> list[int]:
    """sampan and its driver, without what belongs to containers, which ends meanwhile."""

    def is_python(pid: int) -> bool:
        return Path(f"/proc/{pid}/comm").read_text().startswith(("python", "sampan"))

    return [pid for pid in (cluster.pid, *children_of(cluster.pid)) if is_python(pid)]


def _idle(cluster: SampanProcess) -> dict[str, float]:
    processes = _processes(cluster)
    before = cpu_seconds(processes)
    time.sleep(IDLE_SECONDS)
    used = cpu_seconds(processes) - before
    return {"volumes: idle CPU with the driver, % of a core": 100 * used / IDLE_SECONDS}


async def _claim(client: Client, name: str, kind: str) -> None:
    spec = {
        "storageClassName": kind,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "16Mi"}},
    }
    body: Obj = {"metadata": {"name": name}, "spec": spec}
    await client.create(PERSISTENT_VOLUME_CLAIMS, body, "default")


def _volumes(claims: list[str]) -> Obj:
    """What a pod's spec has more."""
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}}
        for number, claim in enumerate(claims)
    ]
    return {"volumes": volumes} if volumes else {}
