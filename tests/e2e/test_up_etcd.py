"""`sampan up --store etcd://…`: two processes, one cluster. [E3]"""

import asyncio
import json
import shutil
import subprocess

import pytest

from sampan.api.errors import ApiError
from sampan.api.resources import CONFIG_MAPS, DEPLOYMENTS, PODS
from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from tests.support.parts.etcd_server import etcd_url
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.etcd, pytest.mark.slow, pytest.mark.timeout(180)]


def client_of(process):
    connection = kubeconfig.load(str(process.kubeconfig), {}, "").connection()
    return rest.connect(connection, clock=SystemClock())


def deployment(name, replicas):
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


STEPS = {"create pods", "queue", "filter and score", "patch pods/status"}


def bare_pod():
    spec = {"containers": [{"name": "main", "image": "registry.example/app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


def steps_of(process, name):
    """As `sampan trace` knows them, whoever of the servers did what."""
    command = [*sampan_command("trace"), name, "-o", "json", "--kubeconfig",
               str(process.kubeconfig)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 0, done.stderr
    return {span["name"] for span in json.loads(done.stdout)["spans"]}


async def pods_become(client, count, seconds=40):
    """Exactly so many, and no more a moment later: nobody else makes pods too."""
    async with asyncio.timeout(seconds):
        while len((await client.list(PODS, "default")).items) != count:
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    assert len((await client.list(PODS, "default")).items) == count


async def insist(call):
    """As a client that retries."""
    while True:
        try:
            return await call()
        except ApiError:
            await asyncio.sleep(0.05)


@pytest.fixture
def two_processes(tmp_path):
    with etcd_url() as url:
        flags = ("--runtime", "none", "--store", f"{url}/cluster")
        one, two = (SampanProcess(tmp_path / name, *flags) for name in ("one", "two"))
        try:
            one.up()
            shutil.copytree(one.data_dir / "pki", two.data_dir / "pki")
            two.up()
            yield one, two
        finally:
            for process in (one, two):
                if process.program is not None:
                    process.kill()


def test_two_processes_on_one_etcd_are_one_cluster_of_which_one_may_go(two_processes):
    one, two = two_processes

    async def together():
        first, second = client_of(one), client_of(two)
        made = await second.create(DEPLOYMENTS, deployment("web", 3), "default")
        assert await first.get(DEPLOYMENTS, "default", "web") is not None
        await pods_become(first, 3)
        for client, name in ((first, "from-one"), (second, "from-two")):
            await client.create(PODS, {"metadata": {"name": name}, **bare_pod()}, "default")
        await first.close()
        await second.close()
        return made

    async def alone():
        left = client_of(two)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}}
        await insist(lambda: left.create(CONFIG_MAPS, config, "default"))
        patch = {"spec": {"replicas": 5}}
        await left.patch(DEPLOYMENTS, "default", "web", patch, patch_type="merge")
        await pods_become(left, 7)
        await left.close()

    asyncio.run(together())
    for asked, name in ((one, "from-two"), (two, "from-one")):
        eventually(lambda asked=asked, name=name: steps_of(asked, name) >= STEPS, 60)
    assert one.stop() == 0
    asyncio.run(alone())


def test_an_etcd_that_does_not_answer_is_one_sentence_and_exit_code_1(tmp_path):
    command = [*sampan_command("up"), "--data-dir", str(tmp_path), "--store", "etcd://127.0.0.1:1"]
    done = subprocess.run(
        [*command, "--runtime", "none", "--port", "0"], capture_output=True, text=True, timeout=60,
        env=environment(), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no etcd answers at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
