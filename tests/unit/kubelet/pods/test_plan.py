"""[N9] the table of cases: what a pod and its runtime state ask for next."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.contracts.probes_hook import Checks
from sampan.kubelet.contracts.runtime import ContainerState, Role
from sampan.kubelet.contracts.spec import RESOURCES_ANNOTATION
from sampan.kubelet.pods.plan import plan
from sampan.kubelet.pods.planning.actions import (
    CreateSandbox,
    HoldBack,
    KillContainer,
    KillPod,
    KillReason,
    RemoveContainer,
    Resize,
    StartContainer,
    Update,
)
from tests.support.worlds.observed_pods import (
    NOW,
    container,
    exited_container,
    observed_pod,
    sandbox,
)
from tests.support.worlds.simulated_node import pod_named

NORMAL, INIT, SIDECAR = Role.NORMAL, Role.INIT, Role.SIDECAR
START = StartContainer("main", NORMAL)
START_AGAIN = StartContainer("main", NORMAL, attempt=1, streak=1)
# After a container that is stopped before one of its name has ended by itself.
REPLACED = StartContainer("main", NORMAL, attempt=1)
SETUP = {"name": "setup", "image": "app:1"}
THEN = {"name": "then", "image": "app:1"}
SIDE = {"name": "side", "image": "app:1", "restartPolicy": "Always"}
CREATED, RUNNING, UNKNOWN = ContainerState.CREATED, ContainerState.RUNNING, ContainerState.UNKNOWN
DEAD = sandbox(ready=False)


def pod(**spec):
    return pod_named("web", **spec)


def deleted():
    made = pod()
    made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made


CASES = {
    "a new pod gets a sandbox and its containers": (pod(), None, [CreateSandbox(0), START]),
    "a new pod with init containers starts only the first": (
        pod(initContainers=[SETUP, THEN]),
        None,
        [CreateSandbox(0), StartContainer("setup", INIT)],
    ),
    "a new pod with a sidecar first starts the sidecar": (
        pod(initContainers=[SIDE]),
        None,
        [CreateSandbox(0), StartContainer("side", SIDECAR)],
    ),
    "a sandbox without containers gets them": (pod(), observed_pod(), [START]),
    "a running pod needs nothing": (pod(), observed_pod(container()), []),
    "an exit is restarted at once the first time": (
        pod(),
        observed_pod(exited_container(exit_code=1)),
        [START_AGAIN],
    ),
    "a completed container is restarted too where the policy is Always": (
        pod(),
        observed_pod(exited_container(exit_code=0)),
        [START_AGAIN],
    ),
    "the second exit waits ten seconds": (
        pod(),
        observed_pod(exited_container(exit_code=1, attempt=1, streak=1, ended_ago=4)),
        [HoldBack("main", 10.0, NOW - 4 + 10)],
    ),
    "after the wait it starts": (
        pod(),
        observed_pod(exited_container(exit_code=1, attempt=1, streak=1, ended_ago=10)),
        [StartContainer("main", NORMAL, attempt=2, streak=2)],
    ),
    "a long run starts the backoff anew": (
        pod(),
        observed_pod(exited_container(exit_code=1, attempt=9, streak=9, ran_seconds=601)),
        [StartContainer("main", NORMAL, attempt=10, streak=1)],
    ),
    "OnFailure restarts a failure": (
        pod(restartPolicy="OnFailure"),
        observed_pod(exited_container(exit_code=1)),
        [START_AGAIN],
    ),
    "OnFailure leaves a success, and ends the sandbox": (
        pod(restartPolicy="OnFailure"),
        observed_pod(exited_container(exit_code=0)),
        [KillPod(KillReason.ALL_CONTAINERS_ENDED)],
    ),
    "Never leaves a failure, and ends the sandbox": (
        pod(restartPolicy="Never"),
        observed_pod(exited_container(exit_code=1)),
        [KillPod(KillReason.ALL_CONTAINERS_ENDED)],
    ),
    "a finished pod whose sandbox is gone needs nothing": (
        pod(restartPolicy="Never"),
        observed_pod(exited_container(exit_code=1), sandboxes=(DEAD,)),
        [],
    ),
    "a dead sandbox is replaced with all that was in it": (
        pod(),
        observed_pod(exited_container(exit_code=137), sandboxes=(DEAD,)),
        [KillPod(KillReason.SANDBOX_CHANGED), CreateSandbox(1), START_AGAIN],
    ),
    "a dead sandbox of a pod that never restarts is not replaced": (
        pod(restartPolicy="Never"),
        observed_pod(exited_container(exit_code=137), sandboxes=(DEAD,)),
        [],
    ),
    "a dead sandbox without any container is replaced even for Never": (
        pod(restartPolicy="Never"),
        observed_pod(sandboxes=(DEAD,)),
        [KillPod(KillReason.SANDBOX_CHANGED), CreateSandbox(1), START],
    ),
    "two ready sandboxes are one too many": (
        pod(),
        observed_pod(container(), sandboxes=(sandbox(attempt=1), sandbox())),
        [KillPod(KillReason.SANDBOX_CHANGED), CreateSandbox(2), REPLACED],
    ),
    "a sandbox in the wrong network is replaced": (
        pod(hostNetwork=True),
        observed_pod(container()),
        [KillPod(KillReason.SANDBOX_CHANGED), CreateSandbox(1), REPLACED],
    ),
    "a sandbox without an address is replaced": (
        pod(),
        observed_pod(sandboxes=(sandbox(ip=""),)),
        [KillPod(KillReason.SANDBOX_CHANGED), CreateSandbox(1), START],
    ),
    "a host network sandbox needs no address": (
        pod(hostNetwork=True),
        observed_pod(container(), sandboxes=(sandbox(host_network=True),)),
        [],
    ),
    "a new sandbox runs the init containers again": (
        pod(initContainers=[SETUP]),
        observed_pod(exited_container(exit_code=137), exited_container("setup"), sandboxes=(DEAD,)),
        [
            KillPod(KillReason.SANDBOX_CHANGED),
            CreateSandbox(1),
            StartContainer("setup", INIT, attempt=1, streak=1),
        ],
    ),
    "a running init container is waited for": (
        pod(initContainers=[SETUP]),
        observed_pod(container("setup")),
        [],
    ),
    "a finished init container makes room for the next": (
        pod(initContainers=[SETUP, THEN]),
        observed_pod(exited_container("setup")),
        [StartContainer("then", INIT)],
    ),
    "all finished init containers make room for the others": (
        pod(initContainers=[SETUP]),
        observed_pod(exited_container("setup")),
        [START],
    ),
    "a failed init container is started again": (
        pod(initContainers=[SETUP]),
        observed_pod(exited_container("setup", 1)),
        [StartContainer("setup", INIT, attempt=1, streak=1)],
    ),
    "a failed init container ends a pod that never restarts": (
        pod(initContainers=[SETUP], restartPolicy="Never"),
        observed_pod(exited_container("setup", 1)),
        [KillPod(KillReason.INIT_CONTAINER_FAILED)],
    ),
    "init containers that were collected are not run again": (
        pod(initContainers=[SETUP]),
        observed_pod(container()),
        [],
    ),
    "a running sidecar lets the next begin": (
        pod(initContainers=[SIDE, SETUP]),
        observed_pod(container("side")),
        [StartContainer("setup", INIT)],
    ),
    "a sidecar that is not started yet holds the next back": (
        pod(initContainers=[{**SIDE, "startupProbe": {}}, SETUP]),
        observed_pod(container("side")),
        [],
    ),
    "an ended sidecar is restarted beside running containers": (
        pod(initContainers=[SIDE]),
        observed_pod(container(), exited_container("side")),
        [StartContainer("side", SIDECAR, attempt=1, streak=1)],
    ),
    "a sidecar does not keep a finished pod alive": (
        pod(initContainers=[SIDE], restartPolicy="Never"),
        observed_pod(exited_container(), container("side")),
        [KillPod(KillReason.ALL_CONTAINERS_ENDED)],
    ),
    "a changed image replaces the container": (
        pod(containers=[{"name": "main", "image": "app:2"}]),
        observed_pod(container()),
        [
            KillContainer("main-0", "main", "Container main definition changed, will be restarted"),
            REPLACED,
        ],
    ),
    "a container that is not in the spec is killed": (
        pod(),
        observed_pod(container(), container("stranger")),
        [KillContainer("stranger-0", "stranger", "")],
    ),
    "a container that runs twice is killed once": (
        pod(),
        observed_pod(container(attempt=1), container(attempt=0)),
        [KillContainer("main-0", "main", "")],
    ),
    "a container that was created but never started is made again": (
        pod(),
        observed_pod(container(state=CREATED)),
        [RemoveContainer("main-0"), START],
    ),
    "a container of unknown state is killed before it is restarted": (
        pod(),
        observed_pod(container(state=UNKNOWN)),
        [
            KillContainer(
                "main-0", "main", 'Container is in "unknown" state, try killing it before restart'
            ),
            REPLACED,
        ],
    ),
    "an ephemeral container starts beside the others": (
        pod(ephemeralContainers=[{"name": "debug", "image": "d:1"}]),
        observed_pod(container()),
        [StartContainer("debug", Role.EPHEMERAL)],
    ),
    "an ephemeral container is never restarted": (
        pod(ephemeralContainers=[{"name": "debug", "image": "d:1"}]),
        observed_pod(container(), exited_container("debug", 1)),
        [],
    ),
    "a container's own policy goes before the pod's": (
        pod(
            restartPolicy="Never",
            containers=[{"name": "main", "image": "app:1", "restartPolicy": "Always"}],
        ),
        observed_pod(exited_container(exit_code=1)),
        [START_AGAIN],
    ),
    "nothing is restarted in a pod that is being deleted": (
        deleted(),
        observed_pod(exited_container(exit_code=1)),
        [KillPod(KillReason.ALL_CONTAINERS_ENDED)],
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_plan_is(case):
    """[N9]"""
    wanted, seen, actions = CASES[case]
    assert plan(wanted, seen, NOW) == actions


LIVENESS = Checks({"main-0": "liveness", "main-2": "liveness"}, {}, {})
KILLED = "Container main failed liveness probe, will be restarted"


def test_a_failed_probe_kills_and_restarts():
    assert plan(pod(), observed_pod(container()), NOW, LIVENESS) == [
        KillContainer("main-0", "main", KILLED),
        REPLACED,
    ]


def test_a_probe_that_keeps_failing_backs_off():
    """[N12] [N13] Whether the wait is over is seen when the container has been stopped."""
    seen = observed_pod(
        container(attempt=2, streak=1), exited_container(attempt=1, exit_code=137, ended_ago=3)
    )
    held = HoldBack("main", 10.0, NOW + 7)
    assert plan(pod(), seen, NOW, LIVENESS) == [
        KillContainer("main-2", "main", KILLED),
        StartContainer("main", NORMAL, attempt=3, streak=2, held=held),
    ]


def test_a_probe_that_fails_now_and_then_restarts_at_once():
    """[N12] [N13] It ran for longer than it would have to wait."""
    seen = observed_pod(
        container(attempt=2, streak=1), exited_container(attempt=1, exit_code=137, ended_ago=30)
    )
    assert plan(pod(), seen, NOW, LIVENESS)[1:] == [
        StartContainer("main", NORMAL, attempt=3, streak=2)
    ]


@pytest.mark.parametrize(
    ("of_pod", "of_container", "expected"),
    [
        ("Never", "Always", [KillContainer("main-0", "main", KILLED), REPLACED]),
        ("Never", "OnFailure", [KillContainer("main-0", "main", KILLED), REPLACED]),
        ("Always", "Never", [KillPod(KillReason.ALL_CONTAINERS_ENDED)]),
    ],
)
def test_a_failed_probe_asks_the_containers_own_policy(of_pod, of_container, expected):
    """[N12]"""
    main = {"name": "main", "image": "app:1", "restartPolicy": of_container}
    wanted = pod(restartPolicy=of_pod, containers=[main])
    assert plan(wanted, observed_pod(container()), NOW, LIVENESS) == expected


def test_a_failed_probe_ends_a_container_that_never_restarts():
    checks = Checks({"main-0": "liveness"}, {}, {})
    two = [{"name": "main", "image": "app:1"}, {"name": "other", "image": "app:1"}]
    seen = observed_pod(container(), container("other"))
    assert plan(pod(restartPolicy="Never", containers=two), seen, NOW, checks) == [
        KillContainer("main-0", "main", "Container main failed liveness probe")
    ]


STATES = st.sampled_from([None, "running", "exited 0", "exited 1"])


@given(
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    states=st.tuples(STATES, STATES, STATES),
    sandbox_ready=st.booleans(),
)
def test_no_normal_container_starts_before_initialization_is_over(policy, states, sandbox_ready):
    """[N9]"""
    setup, side, main = states
    seen = []
    for name, state in (("main", main), ("side", side), ("setup", setup)):
        if state == "running":
            seen.append(container(name))
        elif state is not None:
            seen.append(exited_container(name, int(state[-1])))
    wanted = pod(restartPolicy=policy, initContainers=[SETUP, SIDE])
    boxes = (sandbox(ready=sandbox_ready),)
    actions = plan(wanted, observed_pod(*seen, sandboxes=boxes), NOW)
    starts = [action for action in actions if isinstance(action, StartContainer)]
    if any(start.role is NORMAL for start in starts) and main is None:
        assert side == "running"  # which was begun when all before it had been initialized
    if any(isinstance(action, CreateSandbox) for action in actions):
        assert [start.name for start in starts] == ["setup"]
    assert len({start.name for start in starts}) == len(starts)


@pytest.mark.parametrize(
    ("wanted", "policy", "expected"),
    [
        ("1.5", "NotRequired", []),
        ("1.500", "NotRequired", []),  # another spelling of what it has
        ("2", "NotRequired", [Resize((Update("main-0", "main", cpu=1),))]),
        ("1", "NotRequired", [Resize((Update("main-0", "main", cpu=-1),))]),
        (
            "2",
            "RestartContainer",
            [
                KillContainer("main-0", "main", "Container main resize requires restart"),
                REPLACED,
                Resize(),
            ],
        ),
    ],
)
def test_a_running_container_gets_other_resources(wanted, policy, expected):
    """[N10]"""
    runs = container()
    given = {RESOURCES_ANNOTATION: json.dumps({"requests": {"cpu": "1500m"}})}
    runs = replace(runs, annotations={**runs.annotations, **given})
    main = {
        "name": "main",
        "image": "app:1",
        "resources": {"requests": {"cpu": wanted}},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": policy}],
    }
    assert plan(pod(containers=[main]), observed_pod(runs), NOW) == expected


def test_a_container_that_was_made_without_resources_gets_some():
    """[N6]"""
    given = {"name": "main", "image": "app:1", "resources": {"limits": {"memory": "64Mi"}}}
    assert plan(pod(containers=[given]), observed_pod(container()), NOW) == [
        Resize((Update("main-0", "main", memory=1),))
    ]


def test_a_resize_does_not_wait_for_a_container_that_crashes():
    """[N6]"""
    two = [
        {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}},
        {"name": "other", "image": "app:1"},
    ]
    seen = observed_pod(container(), exited_container("other", 1, streak=1))
    assert plan(pod(containers=two), seen, NOW) == [
        HoldBack("other", 10.0, NOW + 10),
        Resize((Update("main-0", "main", cpu=1),)),
    ]
