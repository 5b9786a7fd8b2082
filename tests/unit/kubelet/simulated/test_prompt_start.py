"""A pod that starts at once is the pod that the steps of its start would have made."""

import re

import pytest

from sampan.api.objects import Obj
from sampan.kubelet.contracts.runtime import ObservedPod
from sampan.kubelet.simulated.prompt_start import needs_nothing
from sampan.kubelet.simulated.script import PREFIX
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode

MAIN: Obj = {"name": "main", "image": "app:1"}
RESOURCES: Obj = {"requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {"memory": "2Mi"}}
PLAIN = {
    "plain": {},
    "untagged": {"containers": [{"name": "main", "image": "app"}]},
    "resources, ports, probes": {
        "containers": [
            {
                **MAIN,
                "resources": RESOURCES,
                "ports": [{"containerPort": 80}],
                "readinessProbe": {"httpGet": {"port": 80}},
            }
        ]
    },
    "two containers": {"containers": [MAIN, {"name": "beside", "image": "app:1"}]},
    "grace": {"terminationGracePeriodSeconds": 3, "restartPolicy": "OnFailure"},
}
NEEDY = {
    "volume": {"volumes": [{"name": "a", "emptyDir": {}}]},
    "init container": {"initContainers": [MAIN]},
    "hook": {"containers": [{**MAIN, "lifecycle": {"postStart": {"exec": {"command": ["a"]}}}}]},
    "environment": {"containers": [{**MAIN, "env": [{"name": "A", "value": "b"}]}]},
    "host network": {"hostNetwork": True},
    "user": {"securityContext": {"runAsNonRoot": True}},
    "pull secrets": {"imagePullSecrets": [{"name": "a"}]},
}


async def started(
    routine_events: bool, **changes: object
) -> tuple[Obj, ObservedPod, SimulatedNode]:
    async with SimulatedNode(routine_events=routine_events) as node:
        await node.make("web", **changes)
        await node.until_phase("Running")
        await node.settle()
        observed = await node.observed()
        assert observed is not None
        return node.status(), observed, node


def normal(told: object) -> str:
    """Without what is another's each time: ids, moments, the test's own directory."""
    text = re.sub(r"sampan-node-[^/]*|[0-9a-f]{64}|0000000[-0-9]+", "", repr(told))
    return re.sub(r"\d{4}-\d\d-\d\dT[0-9:]+Z|_at=[0-9.]+", "", text)


@pytest.mark.parametrize("changes", PLAIN.values(), ids=PLAIN)
def test_it_is_what_the_steps_would_have_made(changes):
    quick, quickly, node = virtual_time.run(started(False, **changes))
    slow, slowly, other = virtual_time.run(started(True, **changes))
    assert normal(quickly) == normal(slowly)
    assert normal(quick) == normal(slow)
    assert "run_sandbox" not in node.runtime.calls
    assert other.runtime.calls["run_sandbox"] == 1
    for name in ("kubelet_started_pods_total", "kubelet_started_containers_total"):
        assert figure(node, name) == figure(other, name) != []


def figure(node: SimulatedNode, name: str) -> list[str]:
    return [line for line in node.metrics.render().splitlines() if line.startswith(name)]


@pytest.mark.parametrize("changes", NEEDY.values(), ids=NEEDY)
def test_what_needs_care_takes_its_steps(changes):
    pod = {"spec": {"containers": [MAIN], **changes}}
    assert not needs_nothing(pod, {})
    assert needs_nothing({"spec": {"containers": [MAIN]}}, {})
    assert not needs_nothing({"spec": {"containers": [MAIN]}}, {f"{PREFIX}start-seconds": "1"})


def test_a_pod_that_started_at_once_ends_as_any_other():
    async def scenario() -> None:
        async with SimulatedNode(routine_events=False) as node:
            await node.make("web")
            await node.until_phase("Running")
            observed = await node.observed()
            assert observed is not None
            node.runtime.crash(observed.containers[0].id, 1)
            await node.until(lambda: node.container().get("restartCount") == 1)
            await node.delete("web")
            await node.until(lambda: not node.has("web"))
            await node.settle()
            assert await node.observed() is None

    virtual_time.run(scenario())


@pytest.mark.parametrize("image", ["app:missing", "app:broken", "no image"])
def test_an_image_that_cannot_be_had_is_told_of_by_the_step_that_fails(image):
    async def scenario() -> None:
        async with SimulatedNode(routine_events=False) as node:
            await node.make("web", containers=[{"name": "main", "image": image}])
            reasons = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName")
            await node.until(
                lambda: (
                    (node.container().get("state") or {}).get("waiting", {}).get("reason")
                    in reasons
                )
            )

    virtual_time.run(scenario())


def test_without_a_free_address_it_is_told_why():
    async def scenario() -> None:
        async with SimulatedNode(routine_events=False) as node:
            for addresses in node.runtime.table.addresses:
                addresses._count = 3
                addresses.reserve(["10.244.0.1"])
            await node.make("web")
            await node.until(lambda: "FailedCreatePodSandBox" in dict(node.events()))

    virtual_time.run(scenario())
