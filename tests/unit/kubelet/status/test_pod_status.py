"""[N14] the status that a pod shows."""

from dataclasses import replace

import pytest

from sampan.kubelet.contracts.probes_hook import Checks
from sampan.kubelet.contracts.runtime import ContainerState
from sampan.kubelet.contracts.spec import RESOURCES_ANNOTATION
from sampan.kubelet.contracts.verdict import Verdict, Waiting
from sampan.kubelet.status.pod_status import (
    Facts,
    finished_status,
    has_ended,
    held_back,
    pod_status,
)
from tests.support.worlds.observed_pods import (
    NOW,
    container,
    exited_container,
    observed_pod,
    sandbox,
)
from tests.support.worlds.simulated_node import pod_named

TWO = [{"name": "main", "image": "app:1"}, {"name": "other", "image": "app:1"}]
SETUP = {"name": "setup", "image": "app:1"}
SIDE = {"name": "side", "image": "app:1", "restartPolicy": "Always"}
GONE = (sandbox(ready=False),)


def pod(status=None, **spec):
    made = pod_named("web", **spec)
    made["metadata"]["generation"] = 3
    if status:
        made["status"] = status
    return made


def shown(wanted, seen, **facts):
    return pod_status(wanted, seen, Facts(now=NOW, node_ips=("192.0.2.1",), **facts))


PHASES = {
    "nothing there": (pod(), None, {}, "Pending"),
    "only a sandbox": (pod(), observed_pod(), {}, "Pending"),
    "running": (pod(), observed_pod(container()), {}, "Running"),
    "one of two running": (pod(containers=TWO), observed_pod(container()), {}, "Pending"),
    "one of two ended, other not begun": (
        pod(containers=TWO, restartPolicy="Never"),
        observed_pod(exited_container()),
        {},
        "Pending",
    ),
    "ended, will be restarted": (pod(), observed_pod(exited_container(exit_code=1)), {}, "Running"),
    "crash loop": (
        pod(),
        observed_pod(exited_container(exit_code=1)),
        {"waiting": {"main": Waiting("CrashLoopBackOff")}},
        "Running",
    ),
    "succeeded": (pod(restartPolicy="Never"), observed_pod(exited_container()), {}, "Succeeded"),
    "failed": (
        pod(restartPolicy="Never"),
        observed_pod(exited_container(exit_code=2)),
        {},
        "Failed",
    ),
    "on failure, failed": (
        pod(restartPolicy="OnFailure"),
        observed_pod(exited_container(exit_code=2)),
        {},
        "Running",
    ),
    "on failure, succeeded": (
        pod(restartPolicy="OnFailure"),
        observed_pod(exited_container()),
        {},
        "Succeeded",
    ),
    "init runs": (pod(initContainers=[SETUP]), observed_pod(container("setup")), {}, "Pending"),
    "init failed for good": (
        pod(initContainers=[SETUP], restartPolicy="Never"),
        observed_pod(exited_container("setup", 1)),
        {},
        "Failed",
    ),
    "init failed, again": (
        pod(initContainers=[SETUP]),
        observed_pod(exited_container("setup", 1)),
        {},
        "Pending",
    ),
    "sidecar only": (pod(initContainers=[SIDE]), observed_pod(container("side")), {}, "Pending"),
    "ended by deletion, obeyed": (
        pod(),
        observed_pod(exited_container()),
        {"ending": True},
        "Succeeded",
    ),
    "ended by deletion, killed": (
        pod(),
        observed_pod(exited_container(exit_code=137)),
        {"ending": True},
        "Failed",
    ),
    "ended before it began, not cleaned up yet": (pod(), None, {"ending": True}, "Pending"),
    "refused": (pod(), None, {"verdict": Verdict("OutOfcpu", "no room")}, "Failed"),
    "a terminal phase stays": (
        pod({"phase": "Succeeded"}),
        observed_pod(container()),
        {},
        "Succeeded",
    ),
}


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
SETUP = {"name": "setup", "image": "app:1"}
SIDECAR = {"name": "side", "image": "app:1", "restartPolicy": "Always"}
PHASES |= {
    "an init container that failed, and restarts by its own policy": (
        pod(initContainers=[SETUP | {"restartPolicy": "OnFailure"}], restartPolicy="Never"),
        observed_pod(exited_container("setup", 1)),
        {},
        "Pending",
    ),
    "an init container that failed, and restarts by a rule": (
        pod(
            initContainers=[SETUP | {"restartPolicy": "Never", "restartPolicyRules": [RULE]}],
            restartPolicy="Never",
        ),
        observed_pod(exited_container("setup", 42)),
        {"waiting": {"setup": Waiting("CrashLoopBackOff")}},
        "Pending",
    ),
    "an init container that failed, and never restarts itself": (
        pod(initContainers=[SETUP | {"restartPolicy": "Never"}]),
        observed_pod(exited_container("setup", 1)),
        {},
        "Failed",
    ),
    "a sidecar that crashes beside containers that run": (
        pod(initContainers=[SIDECAR]),
        observed_pod(container(), exited_container("side", 1)),
        {"waiting": {"side": Waiting("CrashLoopBackOff")}},
        "Running",
    ),
    "a sidecar that starts up once more beside containers that run": (
        pod(initContainers=[SIDECAR | {"startupProbe": {}}]),
        observed_pod(container(), container("side", attempt=1)),
        {},
        "Running",
    ),
    "a sidecar that starts up": (
        pod(initContainers=[SIDECAR | {"startupProbe": {}}]),
        observed_pod(container("side")),
        {},
        "Pending",
    ),
}


@pytest.mark.parametrize("case", PHASES, ids=str)
def test_the_phase_is(case):
    """[N14]"""
    wanted, seen, facts, phase = PHASES[case]
    assert shown(wanted, seen, **facts)["phase"] == phase


def conditions(status):
    return {one["type"]: one for one in status["conditions"]}


def test_conditions_of_a_running_pod_are_true_and_carry_the_generation():
    status = shown(pod(), observed_pod(container()))
    assert all(one["status"] == "True" for one in status["conditions"])
    assert {one["observedGeneration"] for one in status["conditions"]} == {3}
    assert status["observedGeneration"] == 3


def test_unready_containers_are_named():
    status = shown(pod(containers=TWO), observed_pod(container()))
    ready = conditions(status)["Ready"]
    assert ready["reason"] == "ContainersNotReady"
    assert ready["message"] == "containers with unready status: [other]"


def test_a_transition_time_changes_only_with_the_status():
    first = shown(pod(), observed_pod(container()))
    later = pod_status(pod(first), observed_pod(container()), Facts(now=NOW + 50))
    assert conditions(later)["Ready"] == conditions(first)["Ready"]
    down = pod_status(pod(first), observed_pod(exited_container(exit_code=1)), Facts(now=NOW + 50))
    before, after = conditions(first)["Ready"], conditions(down)["Ready"]
    assert after["lastTransitionTime"] > before["lastTransitionTime"]


def test_conditions_of_others_are_kept():
    theirs = {"type": "example.com/gate", "status": "False"}
    status = shown(pod({"conditions": [theirs]}), observed_pod(container()))
    assert theirs in status["conditions"]


def test_a_readiness_gate_holds_the_pod_unready():
    gated = pod(readinessGates=[{"conditionType": "example.com/gate"}])
    ready = conditions(shown(gated, observed_pod(container())))["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    gated["status"] = {"conditions": [{"type": "example.com/gate", "status": "True"}]}
    assert conditions(shown(gated, observed_pod(container())))["Ready"]["status"] == "True"


def test_a_container_with_a_readiness_probe_is_unready_until_the_probe_says_so():
    probed = pod(containers=[{"name": "main", "image": "app:1", "readinessProbe": {}}])
    assert shown(probed, observed_pod(container()))["containerStatuses"][0]["ready"] is False
    checks = Checks({}, {}, {"main-0": True})
    status = shown(probed, observed_pod(container()), checks=checks)
    assert status["containerStatuses"][0]["ready"] is True


def test_a_crash_loop_shows_why_it_waits_and_how_it_ended():
    waits = {"main": Waiting("CrashLoopBackOff", "back-off 10s")}
    seen = observed_pod(
        exited_container(exit_code=3, attempt=2), exited_container(exit_code=1, attempt=1)
    )
    one = shown(pod(), seen, waiting=waits)["containerStatuses"][0]
    assert one["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert one["lastState"]["terminated"]["exitCode"] == 3
    assert one["restartCount"] == 2


def test_an_old_reason_to_wait_is_not_shown_on_what_runs_or_is_done():
    waits = {"main": Waiting("CrashLoopBackOff")}
    assert (
        "running"
        in shown(pod(), observed_pod(container()), waiting=waits)["containerStatuses"][0]["state"]
    )
    done = shown(pod(restartPolicy="Never"), observed_pod(exited_container()), waiting=waits)
    assert "terminated" in done["containerStatuses"][0]["state"]


def test_containers_that_were_lost_are_reported_as_such():
    before = {"containerStatuses": [{"name": "main", "state": {"running": {}}, "restartCount": 4}]}
    one = shown(pod(before), observed_pod(sandboxes=GONE), ending=True)["containerStatuses"][0]
    assert one["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert one["state"]["terminated"]["exitCode"] == 137
    assert one["restartCount"] == 4


def test_reasons_of_an_end_are_named():
    ended = observed_pod(exited_container(exit_code=137, reason="OOMKilled"))
    one = shown(pod(), ended)["containerStatuses"][0]
    assert one["state"]["terminated"]["reason"] == "OOMKilled"


def test_a_created_container_is_still_being_created():
    one = shown(pod(), observed_pod(container(state=ContainerState.CREATED)))["containerStatuses"][
        0
    ]
    assert one["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "containerID" not in one


def test_host_network_pods_have_the_nodes_address():
    hosted = pod(hostNetwork=True)
    status = shown(hosted, observed_pod(container(), sandboxes=(sandbox(host_network=True),)))
    assert status["podIP"] == status["hostIP"] == "192.0.2.1"


def test_the_start_time_stays():
    assert shown(pod({"startTime": "2020-01-01T00:00:00Z"}), None)["startTime"].startswith("2020")


def test_an_end_is_not_told_while_something_may_run():
    ended = shown(pod(restartPolicy="Never"), observed_pod(exited_container(exit_code=1)))
    assert ended["phase"] == "Failed"
    held = held_back(ended, {"phase": "Running"})
    assert held == {**ended, "phase": "Running"}
    assert held_back(ended, {})["phase"] == "Pending"
    assert held_back(ended, {"phase": "Failed"}) is ended
    evicted = {**ended, "reason": "Evicted", "message": "why"}
    assert "reason" not in held_back(evicted, {"phase": "Running"})


def test_a_pod_has_ended_when_its_containers_have_though_sidecars_run():
    wanted = pod(initContainers=[SIDE], restartPolicy="Never")
    status = shown(wanted, observed_pod(exited_container(), container("side")))
    assert status["phase"] == "Running"
    assert has_ended(wanted, status)
    assert not has_ended(wanted, shown(wanted, observed_pod(container(), container("side"))))
    again = pod(initContainers=[SIDE], restartPolicy="OnFailure")
    failed = observed_pod(exited_container(exit_code=1), container("side"))
    assert not has_ended(again, shown(again, failed))


def test_of_a_finished_pod_whatever_began_shows_an_end():
    """As upstream's TerminatePod; what never began, because of an init container, only waits."""
    wanted = pod(containers=TWO)
    finished = finished_status(
        shown(wanted, observed_pod(exited_container(), sandboxes=GONE), ending=True), wanted
    )
    assert finished["phase"] == "Failed"
    ends = [one["state"]["terminated"]["reason"] for one in finished["containerStatuses"]]
    assert ends == ["Completed", "ContainerStatusUnknown"]
    early = pod(initContainers=[SETUP])
    seen = observed_pod(exited_container("setup", exit_code=137), sandboxes=GONE)
    finished = finished_status(shown(early, seen, ending=True), early)
    assert finished["phase"] == "Failed"
    assert "waiting" in finished["containerStatuses"][0]["state"]
    ready = next(one for one in finished["conditions"] if one["type"] == "Ready")
    assert ready["reason"] == "ContainersNotReady"


def test_one_that_was_told_its_end_shows_the_ends_of_its_containers_too():
    """One whose deadline passed while it waited for an image, for instance."""
    wanted = pod()
    told = {**shown(wanted, observed_pod(), ending=True), "phase": "Failed", "reason": "Deadline"}
    finished = finished_status(told, wanted)
    assert (finished["phase"], finished["reason"]) == ("Failed", "Deadline")
    state = finished["containerStatuses"][0]["state"]
    assert state["terminated"]["reason"] == "ContainerStatusUnknown"


def test_whether_a_pod_was_initialized_is_as_it_was_read_before_it_was_ended():
    """Its init container ends with 0 because it is told to: nothing was to follow."""
    early = pod(initContainers=[SETUP])
    seen = observed_pod(exited_container("setup", exit_code=0), sandboxes=GONE)
    status = shown(early, seen, ending=True)
    waits = finished_status(status, {**early, "status": shown(early, observed_pod())})
    assert "waiting" in waits["containerStatuses"][0]["state"]
    lost = finished_status(status, {**early, "status": shown(early, seen)})
    assert "terminated" in lost["containerStatuses"][0]["state"]


def test_a_container_shows_limits_of_its_pod_beside_its_own():
    limits = {"cpu": "100m", "memory": "64Mi"}
    some = {"name": "main", "image": "app:1", "resources": {"limits": {"memory": "20Mi"}}}
    wanted = pod(containers=[some], resources={"limits": limits})
    one = shown(wanted, observed_pod(container()))["containerStatuses"][0]
    assert one["resources"] == {"limits": {"cpu": "100m", "memory": "20Mi"}}
    none = pod(containers=[{"name": "main", "image": "app:1"}], resources={"limits": limits})
    one = shown(none, observed_pod(container()))["containerStatuses"][0]
    assert one["resources"] == {}


def test_a_container_shows_what_it_has_while_it_gets_something_else():
    resources = {"requests": {"cpu": "70m"}, "limits": {"cpu": "150m"}}
    made_with = '{"requests": {"cpu": "50m"}, "limits": {"cpu": "100m"}}'
    runs = replace(container(), annotations={RESOURCES_ANNOTATION: made_with})
    wanted = pod(containers=[{"name": "main", "image": "app:1", "resources": resources}])
    one = shown(wanted, observed_pod(runs))["containerStatuses"][0]
    assert one["allocatedResources"] == {"cpu": "70m"}
    assert one["resources"] == {"limits": {"cpu": "100m"}, "requests": {"cpu": "50m"}}
    one = shown(wanted, observed_pod(runs), applied={runs.id: resources})["containerStatuses"][0]
    assert one["resources"] == resources
