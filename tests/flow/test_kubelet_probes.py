"""Probes through a whole node agent, in virtual time [N13]."""

import asyncio
import itertools

from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode


def probed(*kinds, **words):
    probe = {"httpGet": {"port": 80}, "periodSeconds": 2, **words}
    return [{"name": "main", "image": "app:1", **{f"{kind}Probe": probe for kind in kinds}}]


def reasons(node):
    return [reason for reason, _ in node.events()]


def test_a_pod_is_ready_when_its_probe_says_so_and_not_before():
    async def story():
        async with SimulatedNode() as node:
            await node.make(containers=probed("readiness"), script={"readiness-probe": "fail,ok"})
            await node.until_phase("Running")
            await node.settle()
            assert node.container()["ready"] is False
            await node.until(lambda: node.container()["ready"], 10)
            assert ("Unhealthy", "Readiness probe failed: fails by script") in node.events()

    virtual_time.run(story())


def test_a_pod_that_stops_being_ready_shows_it_after_its_threshold():
    async def story():
        async with SimulatedNode() as node:
            script = {"readiness-probe": "ok,ok,fail"}
            await node.make(containers=probed("readiness", failureThreshold=2), script=script)
            await node.until(lambda: bool(node.container().get("ready")), 10)
            began = node.clock.now()
            await node.until(lambda: not node.container()["ready"], 20)
            assert 5.0 < node.clock.now() - began < 7.0  # ok, fail, fail: three periods
            assert node.container()["restartCount"] == 0

    virtual_time.run(story())


def test_a_container_that_fails_its_liveness_is_killed_and_started_again():
    async def story():
        async with SimulatedNode() as node:
            containers = probed("liveness", failureThreshold=2, terminationGracePeriodSeconds=3)
            script = {"liveness-probe": "ok,fail", "stop-seconds": "never"}
            await node.make(containers=containers, script=script)
            await node.until(lambda: "Killing" in reasons(node), 20)
            began = node.clock.now()
            await node.until(lambda: node.container()["restartCount"] == 1, 20)
            assert 2.9 < node.clock.now() - began < 4.0  # the probe's own grace, not the pod's
            sentence = "Container main failed liveness probe, will be restarted"
            assert ("Killing", sentence) in node.events()

    virtual_time.run(story())


def test_a_probe_that_keeps_failing_ends_in_a_crash_loop():
    """[N12] At once, at once, then after 10 s, 20 s, 40 s: as an original does."""

    async def story():
        async with SimulatedNode() as node:
            containers = probed("liveness", failureThreshold=1, periodSeconds=1)
            await node.make(containers=containers, script={"liveness-probe": "ok,fail"})
            began = []
            for restarts in range(1, 6):
                await node.until(lambda: node.container().get("restartCount") == restarts, 60)  # noqa: B023  # asked for at once
                began.append(node.clock.now())
                if restarts == 2:
                    await node.until(lambda: "waiting" in node.container()["state"], 10)
                    waits = node.container()["state"]["waiting"]
                    assert waits["reason"] == "CrashLoopBackOff"
                    assert waits["message"].startswith("back-off 10s restarting failed")
            gaps = [later - earlier for earlier, later in itertools.pairwise(began)]
            assert [round(gap / 10) for gap in gaps] == [0, 1, 2, 4]
            assert "BackOff" in reasons(node)

    virtual_time.run(story())


def test_a_container_that_always_restarts_in_a_pod_that_never_does_comes_back():
    """[N12]"""

    async def story():
        async with SimulatedNode() as node:
            main = {**probed("liveness", failureThreshold=1)[0], "restartPolicy": "Always"}
            script = {"liveness-probe": "ok,fail"}
            await node.make(containers=[main], restartPolicy="Never", script=script)
            await node.until(lambda: node.container().get("restartCount") == 2, 60)
            assert node.status()["phase"] == "Running"

    virtual_time.run(story())


def test_other_probes_wait_for_the_startup_probe():
    async def story():
        async with SimulatedNode() as node:
            script = {"startup-probe": "fail,fail,ok", "liveness-probe": "ok"}
            await node.make(containers=probed("startup", "readiness", "liveness"), script=script)
            await node.until_phase("Running")
            await asyncio.sleep(2)
            assert node.container()["started"] is False
            await node.until(lambda: node.container()["started"], 10)
            await node.until(lambda: node.container()["ready"], 10)
            assert node.container()["restartCount"] == 0

    virtual_time.run(story())


def test_a_container_that_never_starts_up_is_replaced():
    async def story():
        async with SimulatedNode() as node:
            containers = probed("startup", failureThreshold=2)
            await node.make(containers=containers, script={"startup-probe": "fail"})
            await node.until(lambda: node.container().get("restartCount") == 1, 60)
            sentence = "Container main failed startup probe, will be restarted"
            assert ("Killing", sentence) in node.events()

    virtual_time.run(story())


def test_normal_containers_wait_for_a_sidecars_startup_probe():
    async def story():
        async with SimulatedNode() as node:
            probe = {"httpGet": {"port": 80}, "periodSeconds": 1}
            sidecar = {
                "name": "proxy", "image": "app:1", "restartPolicy": "Always", "startupProbe": probe,
            }  # fmt: skip
            script = {"startup-probe.proxy": "fail,fail,ok"}
            await node.make(initContainers=[sidecar], script=script)
            await asyncio.sleep(1.5)
            assert "running" not in node.container()["state"]
            await node.until(lambda: "running" in node.container()["state"], 10)

    virtual_time.run(story())


def test_a_ready_pod_stays_ready_across_a_restart_of_the_agent():
    """[N21]"""

    async def story():
        async with SimulatedNode() as node:
            containers = probed("readiness", "startup", periodSeconds=60)
            await node.make(containers=containers)
            await node.until(lambda: bool(node.container().get("ready")), 200)
            await node.settle()
            before = node.pod()["metadata"]["resourceVersion"]
            await node.stop()
            await node.start()
            await node.settle()
            await asyncio.sleep(5)
            assert node.container()["ready"] is True
            assert node.pod()["metadata"]["resourceVersion"] == before

    virtual_time.run(story())


def test_a_pod_that_ends_stays_as_ready_as_it_was_until_it_has_ended():
    async def story():
        async with SimulatedNode() as node:
            await node.make(containers=probed("readiness"), script={"stop-seconds": "5"})
            await node.until(lambda: bool(node.container().get("ready")), 10)
            await node.delete()
            await asyncio.sleep(2)
            assert node.container()["ready"] is True
            await node.until(lambda: not node.has(), 30)

    virtual_time.run(story())


def test_a_pod_that_ends_shows_when_it_is_no_longer_ready_and_needs_not_live():
    """Whoever balances load over terminating endpoints has to know"""

    async def story():
        async with SimulatedNode() as node:
            script = {"readiness-probe": "ok,ok,fail", "liveness-probe": "ok,ok,fail",
                      "stop-seconds": "9"}  # fmt: skip
            containers = probed("readiness", "liveness", failureThreshold=1)
            await node.make(containers=containers, script=script)
            await node.until(lambda: bool(node.container().get("ready")), 10)
            await node.delete()
            await node.until(lambda: node.container()["ready"] is False, 6)
            assert "running" in node.container()["state"]
            assert node.has()
            await node.until(lambda: not node.has(), 30)
            assert node.events().count(("Killing", "Stopping container main")) == 1
            assert not [one for one in node.events() if "Liveness" in one[1]]

    virtual_time.run(story())


def test_probes_are_counted_and_an_idle_node_has_no_timers_of_them():
    async def story():
        async with SimulatedNode() as node:
            await node.make(containers=probed("readiness", "liveness"))
            await node.until(lambda: bool(node.container().get("ready")), 10)
            await asyncio.sleep(0.1)
            text = node.kubelet.probe_metrics()
            assert 'prober_probe_total{probe_type="Readiness",result="successful"' in text
            await node.delete()
            await node.until(lambda: not node.has(), 30)
            await node.settle()
            assert "pod_uid=" not in node.kubelet.probe_metrics()

    virtual_time.run(story())


def test_a_look_that_finds_nothing_out_changes_nothing_and_is_told():
    async def story():
        async with SimulatedNode() as node:
            script = {"liveness-probe": "error"}
            await node.make(containers=probed("liveness", failureThreshold=1), script=script)
            await node.until(lambda: "Unhealthy" in reasons(node), 20)
            await asyncio.sleep(10)
            assert node.container()["restartCount"] == 0
            assert "Liveness probe errored and resulted in unknown state" in str(node.events())

    virtual_time.run(story())
