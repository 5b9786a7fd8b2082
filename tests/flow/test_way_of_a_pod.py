"""ARCHITECTURE.md's way of a pod, followed: the files it names are entered, in order, no others.

A pod is created over HTTPS on a cluster in this process; a profiler notes what is entered when.
"""

import asyncio
from pathlib import Path

import pytest

from sampan.api.resources import PODS
from sampan.client import rest
from tests.support.worlds import followed_way as way

pytestmark = pytest.mark.slow

JOURNEYS = 5
DOCUMENT = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
SECTION = DOCUMENT.partition("## The way of a pod")[2].partition("\n`kubectl logs`")[0]
STEPS = way.steps_in(SECTION)
# Folders of which the document names the file that is entered first, and no other one.
ENTRIES = (
    "apiserver/admission/", "apiserver/aggregation/", "apiserver/audit/", "apiserver/authn/",
    "apiserver/authz/", "apiserver/flow/", "apiserver/http/", "apiserver/storage/", "api/apply/",
    "api/custom/", "api/defaults/", "api/gated_fields/", "api/patch/", "api/schema/",
    "api/validation/", "api/warnings/", "controllers/cluster/", "controllers/jobs/",
    "controllers/nodes/", "controllers/services/", "controllers/storage/",
    "controllers/workloads/", "kubelet/cgroups/", "kubelet/container_spec/", "kubelet/contracts/",
    "kubelet/images/", "kubelet/node/", "kubelet/pods/planning/", "kubelet/probes/",
    "kubelet/simulated/", "kubelet/volumes/", "network/pods/", "scheduler/binding/",
    "scheduler/cache/", "scheduler/extenders/", "scheduler/filters/", "scheduler/model/",
    "scheduler/queue/", "scheduler/scores/",
)  # fmt: skip
# What only a real or another node enters.
ELSEWHERE = {
    "client/rest.py": "a part in another process, and this test's own client",
    "apiserver/edge/inprocess_edge.py": "with the first write of a part",
    "scheduler/preemption/preemption.py": "no node is full",
    "kubelet/sources/files.py": "no static pods",
    "kubelet/sources/http.py": "no static pods",
    "kubelet/pods/mirror.py": "no static pods",
    "kubelet/native/native_runtime.py": "containers are simulated",
    "kubelet/runtime/cri_runtime.py": "containers are simulated",
    "cri/client.py": "containers are simulated",
    "network/cni.py": "containers are simulated",
    "network/pods/pod_interfaces.py": "containers are simulated",
    "kubelet/volumes/node_volumes.py": "containers are simulated",
    "cri/events.py": "containers are simulated",
}


async def running_pod(client: rest.RestClient) -> None:
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    meta = {"name": "web", "namespace": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    created = await client.create(PODS, pod)
    revision = int(created["metadata"]["resourceVersion"])
    async for event in client.watch(PODS, "default", revision=revision):
        if event.object.get("status", {}).get("phase") == "Running":
            return


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> dict[str, int]:
    """A lease that is renewed, or what a busy machine leaves to do of the start, may come between
    the steps: then another pod is followed."""
    found: dict[str, int] = {}
    for _ in range(JOURNEYS):
        found = asyncio.run(way.followed(tmp_path_factory.mktemp("cluster"), running_pod))
        order = way.order_of_steps(STEPS, found, set(ELSEWHERE))
        if order == sorted(order) and not way.left_out(STEPS, found, *ENTRIES):
            break
    return found


def test_every_file_that_a_step_names_is_entered(entered):
    assert way.missing(STEPS, entered, set(ELSEWHERE)) == []


def test_the_steps_come_in_their_order(entered):
    """Of each step the first file that it names; others may have been entered by earlier steps."""
    order = way.order_of_steps(STEPS, entered, set(ELSEWHERE))
    assert order == sorted(order)


def test_no_file_on_the_way_is_left_out(entered):
    assert way.left_out(STEPS, entered, *ENTRIES) == []


def test_steps_name_files_and_no_folders():
    named = [name for step in STEPS for name in step]
    assert [name for name in named if name.endswith("/")] == []
    for folder in ENTRIES:
        assert any(name.startswith(folder) for name in named), folder
