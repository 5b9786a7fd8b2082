"""A scenario scripts pods that carry no annotation. Virtual time."""

import asyncio

from sampan.kubelet.simulated.scenario import (
    API_VERSION,
    KIND,
    NOTHING,
    scenario_of,
    with_ends_of_jobs,
)
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode

SCENARIO = scenario_of({
    "apiVersion": API_VERSION, "kind": KIND, "rules": [
        {"name": "slow*", "script": {"start-seconds": 5, "readiness-probe": "fail,fail,ok",
                                     "log": "hello\nworld"}},
        {"name": "job", "script": {"exit-after-seconds": 3, "exit-code": 7}},
        {"name": "torn", "script": {"fail": "run_sandbox:2:no network"}},
    ],
})  # fmt: skip
PROBE = {"tcpSocket": {"port": 80}, "periodSeconds": 1}


def test_timing_exits_logs_probes_and_failures_come_from_the_scenario():
    """[R3]"""

    async def story():
        async with SimulatedNode(scenario=SCENARIO) as node:
            main = {"name": "main", "image": "app:1", "readinessProbe": PROBE}
            await node.make("slow-one", containers=[main])
            await node.make("job", restartPolicy="Never")
            await node.make("torn")
            await asyncio.sleep(4)
            assert node.status("job")["phase"] == "Failed"
            assert node.container("job")["state"]["terminated"]["exitCode"] == 7
            assert node.status("slow-one")["phase"] == "Pending"
            await node.until_phase("Running", "slow-one")
            assert 5 <= node.clock.monotonic() < 6
            assert not node.container("slow-one")["ready"]
            await node.until(lambda: node.container("slow-one")["ready"], seconds=5)
            (log,) = node.log_dir.glob("*slow-one*/main/*.log")
            assert [line.split()[-1] for line in log.read_text().splitlines()] == ["hello", "world"]
            await node.until_phase("Running", "torn")
            failed = [said for reason, said in node.events("torn")
                      if reason == "FailedCreatePodSandBox"]  # fmt: skip
            assert "no network" in failed[0]

    virtual_time.run(story())


def test_init_containers_without_a_script_end_and_sidecars_stay():
    """[R3]"""

    async def story():
        async with SimulatedNode() as node:
            setup = {"name": "setup", "image": "app:1"}
            sidecar = {"name": "side", "image": "app:1", "restartPolicy": "Always"}
            await node.make("plain", initContainers=[sidecar, setup])
            never = {"exit-after-seconds.setup": "never"}
            await node.make("held", initContainers=[setup], script=never)
            await node.until_phase("Running", "plain")
            states = [list(init["state"]) for init in node.status("plain")["initContainerStatuses"]]
            assert states == [["running"], ["terminated"]]
            await asyncio.sleep(60)
            assert node.status("held")["phase"] == "Pending"

    virtual_time.run(story())


def test_a_sidecar_of_a_job_s_pod_runs_until_its_main_containers_have_ended():
    """[R3]"""

    async def story():
        async with SimulatedNode(scenario=with_ends_of_jobs(NOTHING)) as node:
            sidecar = {"name": "side", "image": "app:1", "restartPolicy": "Always"}
            job = {"batch.kubernetes.io/job-name": "report"}
            await node.make("job", restartPolicy="Never", initContainers=[sidecar], labels=job,
                            script={"exit-after-seconds.main": "20"})  # fmt: skip
            await node.make("short", restartPolicy="Never", initContainers=[sidecar], labels=job)
            await node.until_phase("Succeeded", "short")
            await asyncio.sleep(5)
            (side,) = node.status("job")["initContainerStatuses"]
            assert "running" in side["state"]
            assert side["restartCount"] == 0
            await node.until_phase("Succeeded", "job")
            for name in ("job", "short"):
                (side,) = node.status(name)["initContainerStatuses"]
                end = side["state"]["terminated"]
                main = node.container(name)["state"]["terminated"]
                assert (side["restartCount"], end["exitCode"]) == (0, 0)
                assert end["finishedAt"] >= main["finishedAt"]

    virtual_time.run(story())
