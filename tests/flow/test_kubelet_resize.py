"""In-place resize and preemption on a simulated node. Virtual time."""

import asyncio

from sampan.api import features
from sampan.api.features import Release
from sampan.api.objects import copy_of
from sampan.api.resources import PODS
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode


def asking(cpu, **words):
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": "4"}}
    return [{"name": "main", "image": "app:1", "resources": resources, **words}]


async def resize(node, cpu, name="web"):
    pod = copy_of(node.pod(name))
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    pod["metadata"]["generation"] = int(pod["metadata"].get("generation") or 1) + 1
    await node.api.update(PODS, pod)


def given(node, name="web"):
    return (node.container(name).get("allocatedResources") or {}).get("cpu")


def condition(node, kind, name="web"):
    found = [one for one in node.status(name)["conditions"] if one["type"] == kind]
    return found[0] if found else None


def reasons(node, name="web"):
    return [reason for reason, _ in node.events(name) if reason.startswith("Resize")]


def test_a_resize_changes_a_running_container_without_a_restart():
    """[N6]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(containers=asking("1"))
            await node.until_phase("Running")
            container = node.container()["containerID"]
            await resize(node, "2")
            await node.until(lambda: given(node) == "2")
            await node.settle()
            assert node.container()["containerID"] == container
            assert node.container()["restartCount"] == 0
            [updated] = node.runtime.updated.values()
            assert updated.cpu_shares == 2048
            assert condition(node, "PodResizeInProgress") is None
            assert condition(node, "PodResizePending") is None
            assert reasons(node) == ["ResizeStarted", "ResizeCompleted"]
            assert node.status()["observedGeneration"] == 2

    virtual_time.run(story())


def test_a_policy_may_ask_for_a_restart():
    """[N6] [N9]"""

    async def story():
        async with SimulatedNode() as node:
            policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
            await node.make(containers=asking("1", resizePolicy=policy))
            await node.until_phase("Running")
            await resize(node, "2")
            await node.until(lambda: node.container()["restartCount"] == 1 and given(node) == "2")
            await node.settle()
            assert node.runtime.updated == {}
            assert (
                "Killing",
                "Container main resize requires restart",
            ) in node.events()

    virtual_time.run(story())


def test_a_resize_that_does_not_fit_now_is_deferred_until_it_does():
    """[N6]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make("other", containers=asking("2"))
            await node.make(containers=asking("1"))
            await node.until_phase("Running")
            await node.until_phase("Running", "other")
            await resize(node, "3")
            await node.until(lambda: condition(node, "PodResizePending") is not None)
            pending = condition(node, "PodResizePending")
            assert (pending["status"], pending["reason"]) == ("True", "Deferred")
            assert "Node didn't have enough resource: cpu" in pending["message"]
            assert given(node) == "1"
            await node.delete("other")
            await node.until(lambda: given(node) == "3")
            await node.settle()
            assert condition(node, "PodResizePending") is None
            assert reasons(node) == ["ResizeDeferred", "ResizeStarted", "ResizeCompleted"]

    virtual_time.run(story())


def test_of_resizes_that_wait_the_one_of_the_highest_priority_comes_first():
    """[N6]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make("other", containers=asking("1"))
            for name, priority in (("first", 0), ("second", 5)):
                await node.make(name, containers=asking("1"), priority=priority)
                await node.until_phase("Running", name)
            for name in ("first", "second"):
                await resize(node, "2500m", name)
                await node.until(lambda name=name: condition(node, "PodResizePending", name))
            await node.delete("other")
            await node.until(lambda: given(node, "second") == "2500m")
            await node.settle()
            assert given(node, "first") == "1"
            assert condition(node, "PodResizePending", "first")["reason"] == "Deferred"

    virtual_time.run(story())


def test_a_resize_that_can_never_fit_is_infeasible_and_can_be_taken_back():
    """[N6]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(containers=asking("1"))
            await node.until_phase("Running")
            await resize(node, "5")
            await node.until(lambda: condition(node, "PodResizePending") is not None)
            assert condition(node, "PodResizePending")["reason"] == "Infeasible"
            await resize(node, "1")
            await node.until(lambda: condition(node, "PodResizePending") is None)
            assert node.runtime.updated == {}

    virtual_time.run(story())


def test_who_is_removed_with_a_resize_that_waits_holds_what_it_was_given_until_it_has_ended():
    """The next pod is not refused for what was never given away."""

    async def story():
        async with SimulatedNode() as node:
            await node.make(containers=asking("1"), script={"stop-seconds": "5"})
            await node.until_phase("Running")
            await resize(node, "100")
            await node.until(lambda: condition(node, "PodResizePending") is not None)
            await node.delete(grace_seconds=0)
            await node.make("next", containers=asking("2"))
            await node.until_phase("Running", "next")
            assert len(await node.runtime.pods()) == 2

    virtual_time.run(story())


def test_a_runtime_that_refuses_is_asked_again_and_the_status_says_why():
    """[N6]"""

    async def story():
        async with SimulatedNode() as node:
            script = {"fail": "update_container:2:not now"}
            await node.make(containers=asking("1"), script=script)
            await node.until_phase("Running")
            await resize(node, "2")
            await node.until(
                lambda: (condition(node, "PodResizeInProgress") or {}).get("reason") == "Error"
            )
            await node.until(lambda: condition(node, "PodResizeInProgress") is None)
            await node.settle()
            assert len(node.runtime.updated) == 1
            assert reasons(node)[-1] == "ResizeCompleted"

    virtual_time.run(story())


def test_a_restart_in_the_middle_of_a_resize_loses_nothing(tmp_path):
    """[N6] [N21] neither what was given nor what was asked for"""

    async def story():
        checkpoint = str(tmp_path / "state")
        async with SimulatedNode(checkpoint=checkpoint) as node:
            await node.make("other", containers=asking("2"))
            await node.make(containers=asking("1"))
            await node.until_phase("Running")
            await resize(node, "3")
            await node.until(lambda: condition(node, "PodResizePending") is not None)
            container = node.container()["containerID"]
            await node.stop()
            await node.start()
            await asyncio.sleep(20)
            assert node.status()["phase"] == "Running", "it is admitted with what it was given"
            assert condition(node, "PodResizePending")["reason"] == "Deferred"
            await node.stop()
            await resize(node, "2")
            await node.start()
            await node.until(lambda: given(node) == "2")
            await node.until(lambda: condition(node, "PodResizePending") is None)
            assert node.container()["containerID"] == container

    virtual_time.run(story())


def test_a_critical_pod_takes_the_place_of_an_ordinary_one():
    """[N5]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make("ordinary", containers=asking("3"))
            await node.until_phase("Running", "ordinary")
            await node.make("critical", containers=asking("2"), priority=2_000_001_000)
            await node.until_phase("Running", "critical")
            await node.until_phase("Failed", "ordinary")
            assert node.status("ordinary")["reason"] == "Preempting"
            message = "Preempted in order to admit critical pod"
            assert node.status("ordinary")["message"] == message
            assert ("Preempting", message) in node.events("ordinary")

    virtual_time.run(story())


def test_a_container_is_added_to_a_pod_that_runs():
    """[N9] as `kubectl debug` does it"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            pod = copy_of(node.pod())
            pod["spec"]["ephemeralContainers"] = [{"name": "debugger", "image": "busybox:1"}]
            await node.api.update(PODS, pod)
            await node.until(
                lambda: any(
                    "running" in one["state"]
                    for one in node.status().get("ephemeralContainerStatuses") or ()
                )
            )
            assert node.container()["restartCount"] == 0

    virtual_time.run(story())


NEWEST = Release("1.37")


async def change(node, edit, name="web"):
    pod = copy_of(node.pod(name))
    edit(pod["spec"])
    pod["metadata"]["generation"] = int(pod["metadata"].get("generation") or 1) + 1
    await node.api.update(PODS, pod)


def test_an_init_container_that_runs_is_resized():
    """By the gate InPlacePodVerticalScalingInitContainers."""

    async def story():
        async with SimulatedNode() as node:
            setup = {"name": "setup", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
            script = {"exit-after-seconds.setup": "60"}
            await node.make(initContainers=[setup], script=script)
            await node.until(
                lambda: (
                    "running"
                    in (node.status().get("initContainerStatuses") or [{}])[0].get("state", {})
                )
            )

            def more(spec):
                spec["initContainers"][0]["resources"] = {"requests": {"cpu": "2"}}

            await change(node, more)
            await node.until(lambda: "ResizeCompleted" in reasons(node))
            [updated] = node.runtime.updated.values()
            assert updated.cpu_shares == 2048
            status = node.status()["initContainerStatuses"][0]
            assert status["allocatedResources"] == {"cpu": "2"}
            assert status["restartCount"] == 0
            await node.until_phase("Running")

    with features.used(NEWEST):
        virtual_time.run(story())


def test_a_pod_is_resized_as_a_whole():
    """By the gate InPlacePodLevelResourcesVerticalScaling: who has no limit of its own has the
    pod's."""

    async def story():
        async with SimulatedNode() as node:
            small = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
            own = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
            both = [
                {"name": "main", "image": "app:1"},
                {"name": "other", "image": "app:1", "resources": own},
            ]
            await node.make(containers=both, resources=small)
            await node.until_phase("Running")
            await node.settle()
            assert node.status()["allocatedResources"]["cpu"] == "1"
            assert node.status()["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}
            large = {"requests": {"cpu": "2"}, "limits": {"cpu": "3", "memory": "1Gi"}}
            await change(node, lambda spec: spec.update(resources=large))
            await node.until(lambda: "ResizeCompleted" in reasons(node))
            await node.settle()
            assert node.status()["allocatedResources"]["cpu"] == "2"
            assert node.status()["resources"]["limits"] == {"cpu": "3", "memory": "1Gi"}
            [updated] = node.runtime.updated.values()  # only the first
            assert updated.cpu_quota == 300_000
            assert reasons(node) == ["ResizeStarted", "ResizeCompleted"]

    with features.used(NEWEST):
        virtual_time.run(story())


def test_a_whole_that_does_not_fit_is_not_given():
    async def story():
        async with SimulatedNode() as node:
            await node.make(resources={"requests": {"cpu": "1"}})
            await node.until_phase("Running")
            large = {"requests": {"cpu": "5"}}
            await change(node, lambda spec: spec.update(resources=large))
            await node.until(lambda: condition(node, "PodResizePending") is not None)
            await node.settle()
            assert condition(node, "PodResizePending")["reason"] == "Infeasible"
            assert node.status()["allocatedResources"] == {"cpu": "1"}
            assert node.status()["resources"] == {"requests": {"cpu": "1"}}

    with features.used(NEWEST):
        virtual_time.run(story())
