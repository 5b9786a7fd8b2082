"""The life of one pod on one node: simulated runtime, virtual time."""

import asyncio

from sampan.api.resources import PODS
from sampan.kubelet.contracts.runtime import ContainerState
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode, pod_named

REJECTED = (
    "Pod was rejected: Node didn't have enough resource: cpu, "
    "requested: 5000, used: 0, capacity: 4000"
)


def test_a_pod_runs_and_is_reported_with_its_addresses_and_conditions():
    """[N8] [N14]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            status = node.status()
            conditions = {one["type"]: one["status"] for one in status["conditions"]}
            assert conditions == {
                "PodReadyToStartContainers": "True",
                "Initialized": "True",
                "Ready": "True",
                "ContainersReady": "True",
                "PodScheduled": "True",
            }
            assert status["podIPs"] == [{"ip": status["podIP"]}]
            assert status["hostIP"] == "127.0.0.1"
            assert node.container()["ready"] is True
            assert node.container()["containerID"].startswith("simulated://")
            await node.settle()
            assert node.events() == [
                ("Pulling", 'Pulling image "app:1"'),
                (
                    "Pulled",
                    'Successfully pulled image "app:1" in 0s (0s including waiting). '
                    "Image size: 1000000 bytes.",
                ),
                ("Created", "Container created"),
                ("Started", "Container started"),
            ]

    virtual_time.run(story())


def test_a_deleted_pod_is_stopped_reported_and_removed_without_a_tick():
    """[N7] [N11] sync, terminating, terminated follow each other at once"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            before = node.clock.monotonic()
            await node.delete()
            await node.until(lambda: not node.has())
            assert node.clock.monotonic() - before < 0.05
            await node.settle()
            assert await node.runtime.pods() == []
            assert ("Killing", "Stopping container main") in node.events()
            assert node.kubelet.pods() == []

    virtual_time.run(story())


def test_the_end_of_a_simulated_pod_that_ends_at_once_is_told_once():
    """Not first that its deletion was seen, and in the same moment how it ended."""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            await node.settle()
            node.api.calls.clear()
            await node.delete()
            await node.until(lambda: not node.has())
            assert [call for call in node.api.calls if "pods" in call] == [
                "delete pods",
                "patch status pods",
                "delete pods",
            ]

    virtual_time.run(story())


def test_a_pod_that_takes_its_time_to_end_shows_meanwhile_that_its_deletion_was_seen():
    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"stop-seconds": "5"})
            await node.until_phase("Running")
            generation = node.pod()["metadata"]["generation"]
            await node.delete()
            await node.until(lambda: node.status()["observedGeneration"] == generation + 1)
            assert node.status()["phase"] == "Running"

    virtual_time.run(story())


def test_a_pod_that_never_restarts_ends_as_its_exit_code_says():
    """[N12] and its containers stay until it is deleted"""

    async def story():
        async with SimulatedNode() as node:
            for name, code in (("good", "0"), ("bad", "3")):
                script = {"exit-after-seconds": "5", "exit-code": code, "log": "last words"}
                await node.make(name, restartPolicy="Never", script=script)
            await node.until_phase("Succeeded", "good")
            await node.until_phase("Failed", "bad")
            await node.settle()
            ended = node.container("bad")["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (3, "Error")
            assert node.container("good")["state"]["terminated"]["reason"] == "Completed"
            conditions = {one["type"]: one for one in node.status("good")["conditions"]}
            assert conditions["Ready"]["reason"] == "PodCompleted"
            seen = await node.observed("good")
            assert seen is not None
            assert [one.state for one in seen.containers] == [ContainerState.EXITED]
            assert [one.ready for one in seen.sandboxes] == [False]
            assert any(node.log_dir.rglob("*.log"))
            await node.delete("good")
            await node.until(lambda: not node.has("good"))
            await node.settle()
            assert await node.observed("good") is None

    virtual_time.run(story())


def test_a_crashing_container_is_restarted_with_growing_pauses():
    """[N12]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"exit-after-seconds": "1", "exit-code": "7"})
            await node.until(lambda: node.container().get("restartCount") == 1)
            began = node.clock.monotonic()
            await node.until(lambda: "waiting" in node.container().get("state", {}))
            waits = node.container()["state"]["waiting"]
            uid = node.pod()["metadata"]["uid"]
            assert waits == {
                "reason": "CrashLoopBackOff",
                "message": f"back-off 10s restarting failed container=main pod=web_default({uid})",
            }
            assert node.container()["lastState"]["terminated"]["exitCode"] == 7
            assert node.status()["phase"] == "Running"
            await node.until(lambda: node.container()["restartCount"] == 2)
            assert 10.9 < node.clock.monotonic() - began < 11.3
            again = node.clock.monotonic()
            await node.until(lambda: node.container()["restartCount"] == 3)
            assert 20.9 < node.clock.monotonic() - again < 21.3
            await node.settle()
            back_off = f"Back-off restarting failed container main in pod web_default({uid})"
            assert ("BackOff", back_off) in node.events()
            seen = await node.observed()
            assert seen is not None
            # The running one, and the one whose log `--previous` shows.
            assert len(seen.containers) == 2

    virtual_time.run(story())


def test_a_long_run_forgives_earlier_crashes():
    """[N12] the backoff starts anew after ten minutes of running"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"exit-after-seconds": "700", "exit-code": "1"})
            for count in (1, 2, 3):
                await node.until(
                    lambda n=count: node.container().get("restartCount") == n, 2000, every=1.0
                )
                assert "running" in node.container()["state"]
            assert node.clock.monotonic() < 3 * 700 + 5

    virtual_time.run(story())


def test_a_pod_that_restarts_on_failure_succeeds_in_the_end():
    async def story():
        async with SimulatedNode() as node:
            script = {"exit-after-seconds": "1", "exit-code": "1,1,0"}
            await node.make(restartPolicy="OnFailure", script=script)
            await node.until_phase("Succeeded")
            assert node.container()["restartCount"] == 2

    virtual_time.run(story())


def test_a_pod_that_does_not_fit_fails_and_starts_nothing():
    """[N5]"""

    async def story():
        async with SimulatedNode() as node:
            greedy = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "5"}}}
            scheduled = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
            pod = pod_named("web", node_name=node.settings.node_name, containers=[greedy])
            await node.api.create(PODS, {**pod, "status": scheduled}, "default")
            await node.until_phase("Failed")
            assert (node.status()["reason"], node.status()["message"]) == ("OutOfcpu", REJECTED)
            assert node.status()["conditions"] == [], "nor is it said to be scheduled"
            assert "run_sandbox" not in node.runtime.calls
            await node.settle()
            assert node.events() == [("OutOfcpu", REJECTED.removeprefix("Pod was rejected: "))]
            await node.delete()
            await node.until(lambda: not node.has())

    virtual_time.run(story())


def test_a_shorter_grace_interrupts_the_wait():
    """[N7] grace can only shrink, and a shrink interrupts the wait"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"stop-seconds": "never"}, terminationGracePeriodSeconds=600)
            await node.until_phase("Running")
            began = node.clock.monotonic()
            await node.delete()
            await asyncio.sleep(5)
            await node.delete(grace_seconds=900)
            await asyncio.sleep(5)
            await node.delete(grace_seconds=2)
            await node.until(lambda: not node.has())
            assert 12 <= node.clock.monotonic() - began < 12.5

    virtual_time.run(story())


def test_a_pod_is_deleted_while_it_is_being_started():
    """[N7] a running step is cancelled when termination is asked for"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"start-seconds": "100"})
            await asyncio.sleep(1)
            await node.delete()
            await node.until(lambda: not node.has())
            assert node.clock.monotonic() < 3
            await node.settle()
            assert await node.runtime.pods() == []

    virtual_time.run(story())


def test_a_pod_of_the_same_name_waits_for_the_old_one():
    """[N7] never two pods of one full name at once"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"stop-seconds": "20"})
            await node.until_phase("Running")
            await node.delete(grace_seconds=0)  # forced: gone from the API, still on the node
            await node.make()
            await asyncio.sleep(10)
            assert node.runtime.calls["run_sandbox"] == 1
            assert node.status()["phase"] == "Pending"
            await node.until_phase("Running")
            assert 19 < node.clock.monotonic() < 23
            await node.settle()
            assert len(await node.runtime.pods()) == 1

    virtual_time.run(story())


def test_a_dead_sandbox_is_replaced():
    """[N9]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            seen = await node.observed()
            assert seen is not None
            node.runtime.kill_sandbox(seen.sandboxes[0].id)
            await node.until(lambda: node.container().get("restartCount") == 1)
            await node.until(lambda: "running" in node.container()["state"])
            await node.settle()
            seen = await node.observed()
            assert seen is not None
            assert seen.sandboxes[0].ready
            assert seen.sandboxes[0].attempt == 1
            sentence = "Pod sandbox changed, it will be killed and re-created."
            assert ("SandboxChanged", sentence) in node.events()

    virtual_time.run(story())


def test_a_pod_that_runs_too_long_is_ended():
    async def story():
        async with SimulatedNode() as node:
            await node.make(activeDeadlineSeconds=30)
            await node.until_phase("Running")
            await node.until_phase("Failed")
            assert node.status()["reason"] == "DeadlineExceeded"
            assert 29 < node.clock.monotonic() < 31
            await node.settle()
            seen = await node.observed()
            assert seen is not None
            assert all(one.state is ContainerState.EXITED for one in seen.containers)

    virtual_time.run(story())


def test_a_missing_image_is_reported_and_tried_again():
    """[N10]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(containers=[{"name": "main", "image": "app:missing"}])
            await node.until(
                lambda: (
                    node.container().get("state", {}).get("waiting", {}).get("reason")
                    == "ErrImagePull"
                )
            )
            await node.until(
                lambda: node.container()["state"]["waiting"]["reason"] == "ImagePullBackOff"
            )
            assert node.status()["phase"] == "Pending"
            await node.delete()
            await node.until(lambda: not node.has())
            reasons = {reason for reason, _ in node.events()}
            assert {"Pulling", "Failed", "BackOff"} <= reasons
            assert ("Failed", "Error: ErrImagePull") in node.events()

    virtual_time.run(story())


def test_what_is_not_supported_is_said_and_not_started():
    async def story():
        async with SimulatedNode() as node:
            source = {"fromTheFuture": {"name": "roots", "path": "roots.pem"}}
            await node.make(volumes=[{"name": "data", "projected": {"sources": [source]}}])
            await node.until(lambda: any(reason == "FailedMount" for reason, _ in node.events()))
            assert node.status()["phase"] == "Pending"
            assert "run_sandbox" not in node.runtime.calls

    virtual_time.run(story())


def test_failures_of_the_runtime_are_events_and_are_tried_again():
    """[N8] each failure reported as an event and retried"""

    async def story():
        async with SimulatedNode() as node:
            script = {
                "fail": "run_sandbox:1:no network;create_container:1:no disk;start_container:1:no"
            }
            await node.make(script=script)
            await node.until(
                lambda: (
                    node.status().get("phase") == "Running"
                    and "running" in node.container()["state"]
                )
            )
            await node.settle()
            events = node.events()
            assert ("FailedCreatePodSandBox", "Failed to create pod sandbox: no network") in events
            assert ("Failed", "Error: no disk") in events
            assert ("Failed", "Error: no") in events

    virtual_time.run(story())


def test_hooks_run_after_the_start_and_before_the_stop():
    """[N10] [N11]"""

    async def story():
        async with SimulatedNode() as node:
            hook = {"exec": {"command": ["true"]}}
            container = {
                "name": "main",
                "image": "app:1",
                "lifecycle": {"postStart": hook, "preStop": {"sleep": {"seconds": 5}}},
            }
            await node.make(containers=[container])
            await node.until_phase("Running")
            assert node.runtime.calls["exec_sync"] == 1
            began = node.clock.monotonic()
            await node.delete()
            await node.until(lambda: not node.has())
            assert 5 <= node.clock.monotonic() - began < 5.1

    virtual_time.run(story())


def test_a_failed_post_start_hook_kills_the_container():
    async def story():
        async with SimulatedNode() as node:
            hook = {"exec": {"command": ["false"]}}
            container = {"name": "main", "image": "app:1", "lifecycle": {"postStart": hook}}
            await node.make(containers=[container], script={"exec-exit-code": "1"})
            await node.until(
                lambda: ("FailedPostStartHook", "PostStartHook failed") in node.events()
            )
            await node.settle()
            assert node.runtime.calls["stop_container"] >= 1
            await node.until(
                lambda: (
                    node.container()["state"].get("waiting", {}).get("reason")
                    in ("PostStartHookError", "CrashLoopBackOff")
                )
            )

    virtual_time.run(story())


def test_init_containers_run_one_after_the_other_before_the_others():
    """[N9]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(
                initContainers=[{"name": "one", "image": "i:1"}, {"name": "two", "image": "i:1"}],
                script={"exit-after-seconds.one": "5", "exit-after-seconds.two": "5"},
            )
            await asyncio.sleep(3)
            inits = node.status()["initContainerStatuses"]
            assert "running" in inits[0]["state"]
            assert inits[1]["state"] == {"waiting": {"reason": "PodInitializing"}}
            assert node.container()["state"] == {"waiting": {"reason": "PodInitializing"}}
            condition = next(
                one for one in node.status()["conditions"] if one["type"] == "Initialized"
            )
            assert condition["message"] == "containers with incomplete status: [one two]"
            await node.until_phase("Running")
            assert 10 <= node.clock.monotonic() < 10.2
            assert [one["ready"] for one in node.status()["initContainerStatuses"]] == [True, True]

    virtual_time.run(story())


def test_a_failed_init_container_ends_a_pod_that_never_restarts():
    async def story():
        async with SimulatedNode() as node:
            await node.make(
                restartPolicy="Never",
                initContainers=[{"name": "one", "image": "i:1"}],
                script={"exit-after-seconds.one": "1", "exit-code.one": "1"},
            )
            await node.until_phase("Failed")
            await node.settle()
            assert node.runtime.calls["create_container"] == 1

    virtual_time.run(story())


def test_a_sidecar_starts_first_runs_beside_and_ends_last():
    """[N9] [N11]"""

    async def story():
        async with SimulatedNode() as node:
            sidecar = {"name": "side", "image": "s:1", "restartPolicy": "Always"}
            await node.make(
                initContainers=[sidecar, {"name": "setup", "image": "i:1"}],
                restartPolicy="Never",
                script={"exit-after-seconds.setup": "1", "exit-after-seconds.main": "5"},
            )
            await node.until_phase("Running")
            assert node.status()["initContainerStatuses"][0]["ready"] is True
            await node.until_phase("Succeeded")
            await node.settle()
            seen = await node.observed()
            assert seen is not None
            assert all(one.state is ContainerState.EXITED for one in seen.containers)
            ended = {one.name: one.finished_at for one in seen.containers}
            assert ended["side"] >= ended["main"]

    virtual_time.run(story())


def test_a_changed_image_replaces_the_container():
    """[N9] changed hash"""

    async def story():
        async with SimulatedNode() as node:
            await node.make()
            await node.until_phase("Running")
            patch = {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}
            await node.api.patch(PODS, "default", "web", patch)
            await node.until(lambda: node.container()["image"] == "app:2")
            assert node.container()["restartCount"] == 1
            await node.settle()
            sentence = "Container main definition changed, will be restarted"
            assert ("Killing", sentence) in node.events()

    virtual_time.run(story())


def test_what_was_started_is_counted_under_upstreams_names():
    """[N20]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make(script={"fail": "create_container:1:no disk"})
            await node.until_phase("Running")
            text = node.metrics.render()
            assert "kubelet_started_pods_total 1" in text
            assert 'kubelet_started_containers_total{container_type="container"} 2' in text
            labels = 'container_type="container",code="CreateContainerError"'
            assert f"kubelet_started_containers_errors_total{{{labels}}} 1" in text
            assert "kubelet_pod_start_duration_seconds_count 1" in text
            assert "kubelet_pod_worker_start_duration_seconds_count 1" in text
            assert 'kubelet_pod_worker_duration_seconds_bucket{operation_type="sync"' in text
            assert "kubelet_pleg_relist_duration_seconds_count" in text

    virtual_time.run(story())


def test_an_agent_that_no_longer_looks_at_its_runtime_says_that_it_is_ill():
    """[N4] as upstream's /healthz: three minutes without a look."""

    async def story():
        async with SimulatedNode() as node:
            await node.settle()
            assert node.kubelet.healthy() == ""

            async def never():
                await asyncio.Event().wait()

            node.kubelet._observations.changed = never
            await asyncio.sleep(100)
            assert node.kubelet.healthy() == ""
            await asyncio.sleep(100)
            assert node.kubelet.healthy().startswith("pleg was last seen active")
            assert node.kubelet.healthy().endswith("threshold is 3m0s")

    virtual_time.run(story())


def test_every_plan_is_told_at_the_level_of_debugging(caplog):
    """[N9]"""

    async def story():
        async with SimulatedNode() as node:
            await node.make("web")
            await node.until_phase("Running", "web")

    with caplog.at_level("DEBUG", logger="sampan.kubelet.pods.pod_sync"):
        virtual_time.run(story())
    (planned,) = [one for one in caplog.messages if one.startswith("pod actions computed")]
    assert "pod=default/web" in planned
    assert planned.index("CreateSandbox") < planned.index("StartContainer")


def test_a_volume_that_is_an_image_is_pulled_and_holds_its_container_up_until_then():
    """[N15] as the container's own image would"""

    async def story():
        async with SimulatedNode() as node:
            for name, tag in (("web", "1"), ("stuck", "missing")):
                mount = {"name": "data", "mountPath": "/data"}
                source = {"reference": f"data:{tag}", "pullPolicy": "IfNotPresent"}
                await node.make(
                    name,
                    containers=[{"name": "main", "image": "app:1", "volumeMounts": [mount]}],
                    volumes=[{"name": "data", "image": source}],
                )
            await node.until_phase("Running")
            assert ("Pulling", 'Pulling image "data:1"') in node.events()
            await node.until(lambda: "waiting" in node.container("stuck").get("state", {}))
            waiting = node.container("stuck")["state"]["waiting"]
            assert waiting["reason"] in ("ErrImagePull", "ImagePullBackOff")
            assert "data:missing" in waiting["message"]

    virtual_time.run(story())
