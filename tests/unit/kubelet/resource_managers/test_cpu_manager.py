"""The CPU manager: what it gives is on disk, and found again."""

import asyncio
import json

import pytest

from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.resources_hook import Grants, PodRefused
from sampan.kubelet.resource_managers.cpu_manager import CpuManager
from sampan.kubelet.resource_managers.cpu_options import CpuOptions
from sampan.kubelet.resource_managers.cpu_policy import static_policy
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS
from sampan.kubelet.resource_managers.cpu_topology import Cpu, CpuTopology
from sampan.kubelet.resource_managers.numa import Hint
from sampan.kubelet.resource_managers.state_file import BadState
from tests.support import virtual_time

FOUR = CpuTopology({n: Cpu(n, 0, n // 2, 0) for n in range(4)})
ANYWHERE = Hint(None, True)


def manager(root, *, metrics=None, tasks=None):
    policy = static_policy(FOUR, 1, NO_CPUS, CpuOptions())
    tasks = Tasks("test") if tasks is None else tasks
    return CpuManager(policy, str(root), tasks=tasks, metrics=metrics or Metrics())


def pod(uid, cpu):
    amounts = {"cpu": cpu, "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    return {
        "metadata": {"uid": uid, "name": uid},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
    }


def the_container(pod):
    return pod["spec"]["containers"][0]


async def give(cpus, pod, affinity=ANYWHERE):
    await cpus.allocate(pod, the_container(pod), affinity)


def test_what_was_given_is_found_by_the_next_agent(tmp_path):
    """[H5]"""

    async def story():
        cpus, one = manager(tmp_path), pod("a", "2")
        await give(cpus, one)
        assert await cpus.grants(one, the_container(one)) == Grants(cpus="2-3", exclusive_cpus=True)
        written = json.loads((tmp_path / "cpu_manager_state").read_text())
        assert written["policyName"] == "static"
        assert written["defaultCpuSet"] == "0-1"
        assert written["entries"] == {"a": {"c": "2-3"}}

        again = manager(tmp_path)
        assert again.exclusive("a", "c") == {2, 3}
        await give(again, one)  # nothing is given twice
        assert again.cpus_of("b", "x") == {0, 1}

    virtual_time.run(story())


def test_what_ended_is_everybodys_again(tmp_path):
    async def story():
        tasks = Tasks("test")
        cpus, changes = manager(tmp_path, tasks=tasks), []
        cpus.pool_changed = lambda: changes.append(cpus.cpus_of("", ""))
        await give(cpus, pod("a", "1"))
        await give(cpus, pod("b", "1"))
        cpus.keep_only({"b"}.__contains__)
        cpus.release("b")
        cpus.release("b")
        assert [sorted(cpus) for cpus in changes] == [[0, 2, 3], [0, 3], [0, 1, 3], [0, 1, 2, 3]]
        while len(tasks):
            await asyncio.sleep(0)
        assert json.loads((tmp_path / "cpu_manager_state").read_text())["entries"] == {}

    virtual_time.run(story())


def test_who_asks_for_parts_of_a_processor_shares(tmp_path):
    async def story():
        cpus, some = manager(tmp_path), pod("a", "1500m")
        assert not cpus.concerns(some)
        await give(cpus, some)
        assert await cpus.grants(some, the_container(some)) == Grants(cpus="0-3")
        assert not cpus.is_pinned("a")
        assert cpus.container_hints(some, the_container(some)) == {}

    virtual_time.run(story())


def test_a_pod_that_cannot_be_served_is_refused_as_upstream_does(tmp_path):
    async def story():
        metrics = Metrics()
        cpus = manager(tmp_path, metrics=metrics)
        with pytest.raises(PodRefused) as refused:
            await give(cpus, pod("a", "4"))
        assert refused.value.verdict.reason == "UnexpectedAdmissionError"
        assert refused.value.verdict.message == (
            "Pod was rejected: Allocate failed due to not enough cpus available to satisfy "
            "request: requested=4, available=3, which is unexpected"
        )
        text = metrics.render()
        assert "kubelet_cpu_manager_pinning_requests_total 1" in text
        assert "kubelet_cpu_manager_pinning_errors_total 1" in text
        assert "kubelet_cpu_manager_shared_pool_size_millicores 3000" in text
        assert not (tmp_path / "cpu_manager_state").exists()

    virtual_time.run(story())


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("{", "it is no JSON"),
        ('{"policyName":"static","defaultCpuSet":"0-3","checksum":1}', "is corrupted"),
        ('{"policyName":"static"}', "is corrupted"),
    ],
)
def test_state_that_cannot_be_is_refused_with_its_file(tmp_path, written, why):
    (tmp_path / "cpu_manager_state").write_text(written)
    with pytest.raises(BadState) as refused:
        manager(tmp_path)
    assert why in str(refused.value)
    assert f'delete the CPU manager checkpoint file "{tmp_path}/cpu_manager_state"' in str(
        refused.value
    )


def test_processors_that_were_taken_out_are_noticed(tmp_path):
    async def story():
        await give(manager(tmp_path), pod("a", "1"))

    virtual_time.run(story())
    fewer = CpuTopology({n: Cpu(n, 0, 0, 0) for n in range(3)})
    with pytest.raises(BadState, match="doesn't match with CPUs in state"):
        CpuManager(
            static_policy(fewer, 1, NO_CPUS, CpuOptions()), str(tmp_path), tasks=Tasks("test"),
            metrics=Metrics(),
        )  # fmt: skip
