"""[N6] Resizes of running containers: in which order, and what is not done at all."""

import asyncio

import pytest

from sampan.kubelet.cgroups.pod_cgroups import MemoryUsage
from sampan.kubelet.container_spec.linux_resources import NodeResources
from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.pods.planning.actions import Update
from sampan.kubelet.pods.resizing import Resizer
from tests.support.worlds.observed_pods import container, observed_pod
from tests.support.worlds.simulated_node import pod_named

MIB = 1 << 20


class Node:
    """A runtime and cgroups that write down what is asked of them."""

    def __init__(self, used=0, limit=0, refuses=""):
        self.log, self._used, self._limit, self._refuses = [], used, limit, refuses

    async def update_container(self, container_id, resources):
        told = f"{resources.memory_limit_bytes // MIB}Mi {resources.cpu_quota // 100}"
        if self._refuses == container_id:
            raise RuntimeFailure("rpc error: code = Unknown desc = no")
        self.log.append(f"{container_id} {told}")

    async def make_room(self, pod):
        self.log.append("room")

    async def ensure(self, pod):
        self.log.append("pod")

    async def memory_usage(self, uid, containers):
        return MemoryUsage(self._used, self._limit, dict.fromkeys(containers, self._used))


def limits(memory, cpu):
    return {"limits": {"memory": memory, "cpu": cpu}}


def resized(node, *updates, has):
    pod = pod_named(
        "web",
        containers=[
            {"name": "a", "resources": limits("30Mi", "400m")},
            {"name": "b", "resources": limits("60Mi", "100m")},
        ],
    )
    seen = observed_pod(container("a"), container("b"))
    return asyncio.run(Resizer(node, node, NodeResources(1 << 30)).resize(pod, updates, seen, has))


OPPOSITE = (Update("a-0", "a", memory=-1, cpu=1), Update("b-0", "b", memory=1, cpu=-1))
BEFORE = {"a-0": limits("60Mi", "100m"), "b-0": limits("30Mi", "400m")}


def test_memory_goes_before_cpu_and_what_shrinks_before_what_grows():
    node = Node(limit=90 * MIB)
    done = resized(node, *OPPOSITE, has=BEFORE)
    assert node.log == [
        "room",
        "a-0 30Mi 100",
        "b-0 60Mi 400",
        "b-0 60Mi 100",
        "a-0 30Mi 400",
        "pod",
    ]
    assert done.error == ""
    assert done.applied == {"a-0": limits("30Mi", "400m"), "b-0": limits("60Mi", "100m")}


def test_only_the_pod_itself_where_containers_restart():
    node = Node()
    assert resized(node, has={}).error == ""
    assert node.log == ["room", "pod"]


def test_what_was_done_before_a_failure_is_told():
    done = resized(Node(limit=90 * MIB, refuses="b-0"), *OPPOSITE, has=BEFORE)
    assert done.error == "rpc error: code = Unknown desc = no"
    assert done.applied == {"a-0": limits("30Mi", "100m")}


@pytest.mark.parametrize(
    ("used", "limit", "problem"),
    [
        (20 * MIB, 200 * MIB, ""),
        (
            40 * MIB,
            200 * MIB,
            f'attempting to set container "a" memory limit ({30 * MIB}) below current usage '
            f"({40 * MIB})",
        ),
        (
            95 * MIB,
            200 * MIB,
            f"[attempting to set pod memory limit ({90 * MIB}) below current usage ({95 * MIB}), "
            f'attempting to set container "a" memory limit ({30 * MIB}) below current usage '
            f"({95 * MIB})]",
        ),
    ],
)
def test_no_memory_limit_goes_below_what_is_in_use(used, limit, problem):
    node = Node(used, limit)
    done = resized(node, *OPPOSITE, has=BEFORE)
    assert done.error == (f"cannot decrease memory limits: {problem}" if problem else "")
    assert bool(node.log) is not bool(problem)
