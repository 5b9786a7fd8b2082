"""Pods of odd shapes, created and deleted a moment later, eight at a time, on real containers:
afterwards nothing is left of them, in the API or on the machine. SAMPAN_PODS and SAMPAN_SEED change
the run; `make robust` has thousands of pods."""

import asyncio
import contextlib
import os
import random
import shutil
import tempfile
from glob import glob
from pathlib import Path

import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import EVENTS, NAMESPACES, PODS
from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from sampan.core.tasks import all_of
from sampan.kubelet.cgroups.limits import root_of
from tests.support.generators.odd_pods import odd_pod
from tests.support.parts.images import busybox_archive
from tests.support.parts.sampan_process import RUNTIME, SampanProcess
from tests.support.seed import SEED

COUNT = int(os.environ.get("SAMPAN_PODS", "150"))
IMAGE, NAMESPACE, AT_ONCE = "localhost/test/busybox:1", "churn", 8

pytestmark = [pytest.mark.slow, pytest.mark.containerd, pytest.mark.timeout(240 + COUNT)]


@pytest.fixture
def cluster():
    root = Path(tempfile.mkdtemp(prefix="sampan-churn-"))
    made = SampanProcess(root, "--runtime", RUNTIME)
    try:
        made.up()
        made.run("image", "import", str(busybox_archive(root / "busybox.tar", IMAGE)))
        yield made
        made.stop()
    finally:
        made.reset()  # it stops what runs still
    assert made.leftovers() == {}
    shutil.rmtree(root)


async def churn(client):
    """The names of pods that had to be asked for twice, and what the node said of its trouble."""
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    numbers = iter(range(COUNT))

    async def worker():
        for number in numbers:
            rng = random.Random(f"{SEED} {number}")
            name = f"p{number}"
            await client.create(PODS, odd_pod(name, IMAGE, rng), NAMESPACE)
            await asyncio.sleep(rng.uniform(0.0, 1.2))
            grace = rng.choice([None, None, 0, 1])
            await client.delete(PODS, NAMESPACE, name, grace_seconds=grace)
            if rng.random() < 0.2:
                await asyncio.sleep(rng.uniform(0.0, 0.3))
                with contextlib.suppress(NotFound):
                    await client.delete(PODS, NAMESPACE, name, grace_seconds=1)
            if rng.random() < 0.7:
                await until_gone(client, name)

    await all_of(worker() for _ in range(AT_ONCE))


async def until_gone(client, name):
    with contextlib.suppress(NotFound):
        for _ in range(100):
            await client.get(PODS, NAMESPACE, name)
            await asyncio.sleep(0.1)


async def gone(client):
    for _ in range(300):
        left = (await client.list(PODS, NAMESPACE)).items
        if not left:
            break
        await asyncio.sleep(0.2)
    assert [pod["metadata"]["name"] for pod in left] == [], left[:1]
    events = (await client.list(EVENTS, NAMESPACE)).items
    await client.delete(NAMESPACES, "", NAMESPACE)
    for _ in range(150):
        try:
            await client.get(NAMESPACES, "", NAMESPACE)
        except NotFound:
            return [one["message"] for one in events if one["reason"] == "FailedKillPod"]
        await asyncio.sleep(0.2)
    raise AssertionError(f"the namespace stays (SAMPAN_SEED={SEED})")


async def story(connection, data_dir):
    client = rest.connect(connection, clock=SystemClock())
    try:
        await churn(client)
        complaints = await gone(client)
        for _ in range(100):
            left = on_the_machine(data_dir)
            if not left:
                break
            await asyncio.sleep(0.2)
        return complaints, left
    finally:
        await client.close()


def on_the_machine(data_dir):
    """What pods leave: cgroups with what runs in them, mounts, namespaces, addresses, folders."""
    found = {
        "cgroups": glob(f"/sys/fs/cgroup/*{root_of(data_dir)}/kubepods/**/*pod*", recursive=True),
        "mounts": [
            line
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if f"{data_dir}/kubelet/pods/" in line or f"{data_dir}/containerd/state/" in line
        ],
        "folders": [str(path) for path in (data_dir / "kubelet" / "pods").glob("*")],
        "logs": [str(path) for path in (data_dir / "logs" / "pods").glob(f"{NAMESPACE}_*")],
        "addresses": [str(path) for path in data_dir.glob("cni-ipam/**/*.*.*.*")],
    }
    return {kind: things for kind, things in found.items() if things}


def test_nothing_is_left_of_pods_that_go_at_any_moment(cluster):
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    complaints, left = asyncio.run(story(connection, cluster.data_dir))
    said = f"SAMPAN_SEED={SEED}: {cluster.program.tail()}"
    assert left == {}, said
    assert complaints == [], said
