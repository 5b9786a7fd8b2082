"""The static CPU policy: what the original gave to the same pods on the same machines, and what
holds of any."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.resource_managers.cpu_assignment import NotEnoughCpus
from sampan.kubelet.resource_managers.cpu_options import ALPHA_GATE, CpuOptions, cpu_options
from sampan.kubelet.resource_managers.cpu_policy import (
    BadCpuState,
    CpuState,
    SmtAlignmentError,
    exclusive_cpus,
    reusable_after,
    static_policy,
)
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS, cpus_text, parse_cpus
from sampan.kubelet.resource_managers.cpu_topology import Cpu, CpuTopology
from sampan.kubelet.resource_managers.numa import bits_of, mask_of

RECORDED = Path(__file__).parent / "recorded" / "cpu_manager_v1.35.8.jsonl.gz"


def container(said, *, burstable=False):
    amounts = {"cpu": said["cpu"], "memory": "1Gi"}
    resources = {"requests": amounts} if burstable else {"requests": amounts, "limits": amounts}
    return {"name": said["name"], "resources": resources} | (
        {"restartPolicy": "Always"} if said.get("sidecar") else {}
    )


def pod_of(said):
    burstable = said.get("burstable", False)
    kinds = {"initContainers": said.get("init"), "containers": said.get("containers")}
    spec = {
        kind: [container(item, burstable=burstable) for item in items]
        for kind, items in kinds.items()
        if items
    }
    return {"metadata": {"uid": said["pod"], "name": said["pod"]}, "spec": spec}


def machine(cpus):
    return CpuTopology({number: Cpu(*place) for number, *place in cpus})


class Replay:
    """The ops of one recorded machine."""

    def __init__(self, said, policy):
        self.policy, self.state = policy, policy.initial()
        self.reusable = ("", NO_CPUS)
        self.pods = {}

    def reusable_of(self, pod):
        return self.reusable[1] if self.reusable[0] == pod["metadata"]["uid"] else NO_CPUS

    def pod(self, op):
        pod = self.pods[op["pod"]] = pod_of(op)
        self.same_hints(op, self.policy.pod_hints(self.state, pod, self.reusable_of(pod)))

    def same_hints(self, op, found):
        if op.get("no_hints"):
            assert found is None, op
        else:
            said = [(item["mask"], item["preferred"]) for item in op["hints"]]
            assert [(bits_of(hint.mask), hint.preferred) for hint in found] == said, op

    def allocate(self, op):
        pod = self.pods[op["pod"]]
        [wanted] = [
            item
            for item in [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
            if item["name"] == op["container"]
        ]
        reusable = self.reusable_of(pod)
        self.same_hints(op, self.policy.container_hints(self.state, pod, wanted, reusable))
        affinity = mask_of(op["affinity"]) if op.get("affinity") else None
        if "error" in op:
            with pytest.raises((NotEnoughCpus, SmtAlignmentError)) as refused:
                self.policy.allocated(self.state, pod, wanted, affinity, reusable)
            assert str(refused.value) == op["error"], op
            return
        self.state = self.policy.allocated(self.state, pod, wanted, affinity, reusable)
        held = self.state.of(op["pod"], op["container"])
        assert cpus_text(held or ()) == op.get("result", ""), op
        if exclusive_cpus(pod, wanted):
            self.reusable = (op["pod"], reusable_after(pod, wanted, reusable, held or ()))

    def remove(self, op):
        self.state = self.state.without_pod(op["pod"])


@pytest.mark.slow
def test_the_original_gives_the_same_processors():
    """[H5] Random machines, options and pods: hints, processors, errors and the shared pool."""
    for line in gzip.decompress(RECORDED.read_bytes()).decode().splitlines():
        said = json.loads(line)
        if "error" in said:  # of its options: test_cpu_options.py has them
            assert "socket" in said["error"] or "at the same time" in said["error"]
            continue
        options = cpu_options(said.get("options") or {}, {ALPHA_GATE: True})
        policy = static_policy(
            machine(said["cpus"]), said["reserved_count"], parse_cpus(said.get("specific", "")),
            options,
        )  # fmt: skip
        assert cpus_text(policy.reserved) == said["reserved"]
        replay = Replay(said, policy)
        for op in said["ops"]:
            getattr(replay, op["op"])(op)
            if op.get("default") is not None:
                assert cpus_text(replay.state.shared) == op["default"], (op, said["options"])
            policy.check(replay.state)


TWO_SOCKETS = machine([(n, n // 2 * 2, n // 4, n // 4, n // 4) for n in range(8)])


def guaranteed(cpus, uid="a"):
    return pod_of({"pod": uid, "containers": [{"name": "c", "cpu": str(cpus)}]})


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12))
def test_a_processor_is_shared_or_has_one_container(steps):
    policy = static_policy(TWO_SOCKETS, 1, NO_CPUS, CpuOptions())
    state = policy.initial()
    for number, (cpus, ends) in enumerate(steps):
        pod = guaranteed(cpus or 1, str(number))
        try:
            state = policy.allocated(state, pod, pod["spec"]["containers"][0], None, NO_CPUS)
        except NotEnoughCpus:
            assert len(state.shared - policy.reserved) < (cpus or 1)
        if ends and state.assigned:
            state = state.without_pod(next(iter(state.assigned)))
        held = [cpus for of_pod in state.assigned.values() for cpus in of_pod.values()]
        assert sum(map(len, held)) + len(state.shared) == 8
        assert policy.reserved <= state.shared
        policy.check(state)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (CpuState(frozenset(), {}), "default cpuset cannot be empty"),
        (CpuState(frozenset({1, 2}), {}), 'not all reserved cpus: "0" are present'),
        (
            CpuState(frozenset(range(8)), {"a": {"c": frozenset({3})}}),
            'pod: a, container: c cpuset: "3" overlaps with default cpuset "0-7"',
        ),
        (
            CpuState(frozenset(range(6)), {"a": {"c": frozenset({6})}}),
            """current set of available CPUs "0-7" doesn't match with CPUs in state "0-6\"""",
        ),
    ],
)
def test_what_cannot_have_been_given_on_this_machine_is_refused(state, why):
    policy = static_policy(TWO_SOCKETS, 1, NO_CPUS, CpuOptions())
    with pytest.raises(BadCpuState) as refused:
        policy.check(state)
    assert why in str(refused.value)


def test_whole_cores_only():
    policy = static_policy(TWO_SOCKETS, 2, NO_CPUS, CpuOptions(full_cores=True))
    for cpus, why in ((3, "requested 3 cpus not multiple cpus per core = 2"),
                      (8, "available physical CPUs = 6, requested CPUs = 8")):  # fmt: skip
        pod = guaranteed(cpus)
        with pytest.raises(SmtAlignmentError, match=why):
            policy.allocated(policy.initial(), pod, pod["spec"]["containers"][0], None, NO_CPUS)


def test_a_pod_with_resources_of_its_own_shares():
    pod = guaranteed(2)
    pod["spec"]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    assert exclusive_cpus(pod, pod["spec"]["containers"][0]) == 0


def test_reserved_processors_are_there_or_said_to_be_missing():
    with pytest.raises(BadCpuState, match="unable to reserve the required amount of CPUs"):
        static_policy(TWO_SOCKETS, 9, NO_CPUS, CpuOptions())
    with pytest.raises(BadCpuState, match="unknown CPU ID: 9"):
        static_policy(TWO_SOCKETS, 1, frozenset({9}), CpuOptions())
