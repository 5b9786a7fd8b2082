"""Which container a request means."""

import asyncio

import pytest

from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    SandboxSpec,
)
from sampan.kubelet.server.lookup import (
    NotAvailable,
    RuntimeLookup,
    choose_for_logs,
)
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support.virtual_time import LoopClock


def pod(policy: str = "Always", waiting: str = "", **metadata: str):
    made = {
        "metadata": {"name": "web", "namespace": "default", "uid": "u1", **metadata},
        "spec": {"containers": [{"name": "main"}], "restartPolicy": policy},
    }
    if waiting:
        state = {"name": "main", "state": {"waiting": {"reason": waiting}}}
        made["status"] = {"containerStatuses": [state]}
    return made


def instance(attempt: int, state: ContainerState, exit_code: int = 0) -> ContainerStatus:
    return ContainerStatus(
        id=f"c{attempt}",
        sandbox_id="s",
        name="main",
        attempt=attempt,
        state=state,
        image="i",
        image_id="i",
        created_at=0.0,
        exit_code=exit_code,
        log_path=f"/logs/{attempt}.log",
    )


RUNNING, EXITED, CREATED = ContainerState.RUNNING, ContainerState.EXITED, ContainerState.CREATED


@pytest.mark.parametrize(
    ("policy", "instances", "previous", "chosen"),
    [
        ("Always", [instance(0, RUNNING)], False, "c0"),
        ("Always", [instance(1, RUNNING), instance(0, EXITED)], False, "c1"),
        ("Always", [instance(1, RUNNING), instance(0, EXITED)], True, "c0"),
        # In its backoff: the next one has not started, so the last one is previous already.
        ("Always", [instance(1, EXITED), instance(0, EXITED)], True, "c1"),
        ("Always", [instance(2, CREATED), instance(1, EXITED)], False, "c1"),
        ("Never", [instance(0, EXITED, 1)], False, "c0"),
        ("OnFailure", [instance(1, EXITED, 0), instance(0, EXITED, 1)], True, "c0"),
    ],
)
def test_the_instance_that_is_meant(policy, instances, previous, chosen):
    """[N19]"""
    assert choose_for_logs(pod(policy), "main", instances, previous).id == chosen


@pytest.mark.parametrize(
    ("made", "name", "instances", "previous", "message"),
    [
        (pod("Never"), "main", [instance(0, EXITED)], True,
         'previous terminated container "main" in pod "web" not found'),
        (pod(), "other", [], False, 'container "other" not found in pod "web"'),
        (pod(waiting="PodInitializing"), "main", [], False,
         'container "main" in pod "web" is waiting to start: PodInitializing'),
        (pod(waiting="ErrImagePull"), "main", [], False,
         'container "main" in pod "web" is waiting to start: image can\'t be pulled'),
        (pod(waiting="ImagePullBackOff"), "main", [], False,
         'container "main" in pod "web" is waiting to start: trying and failing to pull image'),
        (pod(), "main", [instance(0, CREATED)], False,
         'container "main" in pod "web" is waiting to start: ContainerCreating'),
    ],
)  # fmt: skip
def test_what_is_not_there_is_worded_as_the_original_does(made, name, instances, previous, message):
    with pytest.raises(NotAvailable) as raised:
        choose_for_logs(made, name, instances, previous)
    assert str(raised.value) == message


def test_the_runtime_says_what_runs():
    async def story():
        runtime = SimulatedRuntime(clock=LoopClock())
        sandbox = SandboxSpec("web", "default", "u1", 0, "web", "")
        sandbox_id = await runtime.run_sandbox(sandbox)
        spec = ContainerSpec("main", 0, "i", "i")
        container_id = await runtime.create_container(sandbox_id, spec, sandbox)
        await runtime.start_container(container_id)
        terminating = pod(uid="old", deletionTimestamp="2026-11-15T06:32:19Z")
        lookup = RuntimeLookup(lambda: [terminating, pod()], runtime)
        seen = await runtime.pod("u1")
        looked = RuntimeLookup(lambda: [pod()], runtime, {"u1": seen}.get)
        assert looked.probably("default", "web", "main") == container_id
        found = await lookup.find_container("default", "web", "main")
        assert (found.id, found.running) == (container_id, True)
        assert await lookup.sandbox_id("default", "web") == sandbox_id
        with pytest.raises(NotAvailable, match='pod "gone" does not exist'):
            await lookup.find_container("default", "gone", "main")
        with pytest.raises(NotAvailable, match="does not exist"):
            await lookup.find_container("default", "web", "main", uid="other")
        with pytest.raises(NotAvailable, match="waiting to start"):
            await lookup.find_container("default", "web", "main", uid="old")
        runtime.crash(container_id)
        assert not (await lookup.find_container("default", "web", "main")).running
        seen = await runtime.pod("u1")
        looked = RuntimeLookup(lambda: [pod()], runtime, {"u1": seen}.get)
        assert looked.probably("default", "web") == sandbox_id
        assert looked.probably("default", "web", "main") == ""  # it ended
        assert lookup.probably("default", "web") == ""  # nobody looked
        await runtime.stop_sandbox(sandbox_id)
        with pytest.raises(NotAvailable, match="sandbox"):
            await lookup.sandbox_id("default", "web")

    asyncio.run(story())
