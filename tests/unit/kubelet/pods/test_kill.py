"""[N11] the order and the patience of an end."""

import asyncio

from sampan.kubelet.contracts.runtime import ExecResult
from sampan.kubelet.pods.hooks import Hooks
from sampan.kubelet.pods.kill import Killer
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.observed_pods import container, exited_container, observed_pod
from tests.support.worlds.simulated_node import pod_named


class Recording:
    """A runtime and a listener to events that write down what is asked of them."""

    def __init__(self, stop_seconds=0.0, exec_seconds=0.0):
        self.log = []
        self._stop_seconds, self._exec_seconds = stop_seconds, exec_seconds

    async def stop_container(self, container_id, grace_seconds):
        self.log.append(f"stop {container_id} {grace_seconds:g}")
        await asyncio.sleep(self._stop_seconds)
        self.log.append(f"stopped {container_id}")

    async def signal_container(self, container_id, signal, seconds):
        self.log.append(f"{signal} {container_id} within {seconds:g}")
        return True

    async def stop_sandbox(self, sandbox_id):
        self.log.append(f"stop {sandbox_id}")

    async def exec_sync(self, container_id, command, timeout_seconds):
        self.log.append(f"exec {container_id} within {timeout_seconds:g}")
        await asyncio.sleep(self._exec_seconds)
        return ExecResult(0, b"", b"")

    def normal(self, pod, reason, message, *, container=""):
        self.log.append(f"{reason}: {message}")

    def warning(self, pod, reason, message, *, container=""):
        self.log.append(f"{reason}: {message}")


def killed(pod, seen, grace, recording):
    async def story():
        clock = LoopClock()
        hooks = Hooks(recording, clock, recording)
        killer = Killer(runtime=recording, hooks=hooks, events=recording, clock=clock)
        await killer.kill_pod(pod, seen, grace)

    virtual_time.run(story())
    return recording.log


def test_sidecars_end_last_in_reverse_order_with_what_is_left_of_the_grace():
    pod = pod_named(
        "web",
        initContainers=[
            {"name": "first", "restartPolicy": "Always"},
            {"name": "second", "restartPolicy": "Always"},
        ],
    )
    seen = observed_pod(container(), container("first"), container("second"))
    log = killed(pod, seen, 10.0, Recording(stop_seconds=6))
    assert [line for line in log if line.startswith("stop")] == [
        "stop main-0 10",
        "stopped main-0",
        "stop second-0 4",
        "stop first-0 2",  # as upstream: the grace is over, whoever has not ended
        "stopped second-0",
        "stopped first-0",
        "stop sandbox-0",
    ]


def test_the_hooks_of_sidecars_run_beside_those_of_the_others():
    """Only their signals wait for their turn."""
    bye = {"lifecycle": {"preStop": {"exec": {"command": ["bye"]}}}}
    main, side = {"name": "main"} | bye, {"name": "side", "restartPolicy": "Always"} | bye
    pod = pod_named("web", containers=[main], initContainers=[side])
    log = killed(pod, observed_pod(container(), container("side")), 10.0, Recording(exec_seconds=5))
    assert [line for line in log if line.startswith(("exec", "stop"))] == [
        "exec main-0 within 10",
        "exec side-0 within 10",
        "stop main-0 5",
        "stopped main-0",
        "stop side-0 5",
        "stopped side-0",
        "stop sandbox-0",
    ]


def test_the_shortest_grace_leaves_two_seconds():
    log = killed(pod_named("web"), observed_pod(container()), 1.0, Recording())
    assert log[1] == "stop main-0 2"


def test_what_failed_its_post_start_hook_is_told_to_stop_before():
    bye = {"lifecycle": {"preStop": {"exec": {"command": ["bye"]}}}}
    pod = pod_named("web", containers=[{"name": "main"} | bye], terminationGracePeriodSeconds=5)

    async def story(recording):
        clock = LoopClock()
        hooks = Hooks(recording, clock, recording)
        killer = Killer(runtime=recording, hooks=hooks, events=recording, clock=clock)
        await killer.stop_failed(pod, "main-0", "main", "")
        return recording.log

    assert virtual_time.run(story(Recording())) == [
        "Killing: FailedPostStartHook",
        "exec main-0 within 5",
        "stop main-0 5",
        "stopped main-0",
    ]


def test_a_hook_runs_inside_the_grace():
    hooked = {
        "name": "main",
        "image": "app:1",
        "lifecycle": {"preStop": {"exec": {"command": ["bye"]}}},
    }
    pod = pod_named("web", containers=[hooked])
    log = killed(pod, observed_pod(container()), 30.0, Recording(exec_seconds=10))
    assert log[:3] == [
        "Killing: Stopping container main",
        "exec main-0 within 30",
        "stop main-0 20",
    ]


def test_a_hook_that_this_node_cannot_run_is_said():
    hooked = {"name": "main", "image": "app:1", "lifecycle": {"preStop": {"tcpSocket": {}}}}
    log = killed(
        pod_named("web", containers=[hooked]), observed_pod(container()), 30.0, Recording()
    )
    assert "FailedPreStopHook: PreStopHook failed" in log


def test_what_has_ended_is_left_alone():
    log = killed(pod_named("web"), observed_pod(exited_container()), 30.0, Recording())
    assert log == ["stop sandbox-0"]


def test_a_container_with_a_stop_signal_of_its_own_gets_that_one():
    main = {"name": "main", "lifecycle": {"stopSignal": "SIGUSR1"}}
    log = killed(pod_named("web", containers=[main]), observed_pod(container()), 5.0, Recording())
    assert log[1:3] == ["SIGUSR1 main-0 within 5", "stop main-0 0"]
