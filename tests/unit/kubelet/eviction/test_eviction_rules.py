"""When a node is under pressure, and which pod has to go [N18]."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.eviction.eviction_rules import (
    MEMORY,
    NODEFS,
    Available,
    Candidate,
    EvictionSettings,
    Pressure,
    Threshold,
    grace_of,
    message,
    observe,
    rank,
    request_of,
    why_not_taken,
)

GB = 1 << 30
HARD = Threshold(MEMORY, 100 << 20)
SOFT = Threshold(MEMORY, 500 << 20, grace_seconds=30)
SETTINGS = EvictionSettings((HARD, SOFT, Threshold(NODEFS, percent=10)))
PLENTY = {MEMORY: Available(GB, 8 * GB), NODEFS: Available(50, 100)}


def pod(name="p", request="0", priority=0, **spec):
    containers = [{"name": "c", "resources": {"requests": {"memory": request}}}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": containers, "priority": priority, **spec},
    }


def test_nothing_is_due_while_there_is_plenty():
    pressure, due = observe(Pressure(), SETTINGS, PLENTY, 0.0)
    assert due is None
    assert pressure.conditions(0.0, 300) == frozenset()


def test_a_soft_threshold_waits_for_its_grace_and_a_hard_one_does_not():
    low = {**PLENTY, MEMORY: Available(300 << 20, 8 * GB)}
    pressure, due = observe(Pressure(), SETTINGS, low, 0.0)
    assert due is None
    assert pressure.conditions(0.0, 300) == {"MemoryPressure"}
    pressure, due = observe(pressure, SETTINGS, low, 29.0)
    assert due is None
    _, due = observe(pressure, SETTINGS, low, 30.0)
    assert due == SOFT
    _, due = observe(Pressure(), SETTINGS, {MEMORY: Available(1, 8 * GB)}, 0.0)
    assert due == HARD


def test_a_condition_stays_for_a_while_after_its_cause_is_gone():
    low = {NODEFS: Available(9, 100)}
    pressure, due = observe(Pressure(), SETTINGS, low, 0.0)
    assert due is not None
    pressure, due = observe(pressure, SETTINGS, PLENTY, 10.0)
    assert due is None
    assert pressure.conditions(10.0, 300) == {"DiskPressure"}
    pressure, _ = observe(pressure, SETTINGS, PLENTY, 301.0)
    assert pressure.conditions(301.0, 300) == frozenset()


def test_beyond_the_request_comes_first_then_low_priority_then_the_most_beyond():
    order = rank(
        [
            Candidate(pod("within", "1Gi"), {"memory": GB // 2}),
            Candidate(pod("important", priority=10), {"memory": 4 * GB}),
            Candidate(pod("small"), {"memory": 10}),
            Candidate(pod("large"), {"memory": GB}),
            Candidate(pod("critical", priority=2_000_001_000), {"memory": 9 * GB}),
        ],
        "memory",
    )
    names = [one.pod["metadata"]["name"] for one in order]
    assert names == ["large", "small", "important", "within"]


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 3)), max_size=8))
def test_no_pod_within_its_request_goes_before_one_beyond_it(made):
    candidates = [
        Candidate(pod(str(n), str(asked), priority), {"memory": used})
        for n, (asked, used, priority) in enumerate(made)
    ]
    within = [
        one.usage["memory"] <= request_of(one.pod, "memory") for one in rank(candidates, "memory")
    ]
    assert within == sorted(within)


def test_the_message_is_upstreams():
    chosen = Candidate(pod(request="1Mi"), {"memory": GB}, {"memory": {"c": 2 << 20}})
    assert message(HARD, Available(50 << 20, 8 * GB), chosen) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container c was using 2Mi, request is 1Mi, has larger consumption of memory. "
    )


def test_a_disk_s_message_names_the_containers_that_wrote_more_than_they_said():
    by_container = {"ephemeral-storage": {"c": 5 << 20}, "memory": {"c": GB}}
    text = message(SETTINGS.thresholds[2], Available(5 << 20, 100 << 20),
                   Candidate(pod(), {}, by_container))  # fmt: skip
    assert text == (
        "The node was low on resource: ephemeral-storage. "
        "Threshold quantity: 10Mi, available: 5Mi. "
        "Container c was using 5Mi, request is 0, has larger consumption of ephemeral-storage. "
    )


def test_a_threshold_that_was_acted_on_is_over_when_its_minimum_was_reclaimed():
    least = Threshold(NODEFS, amount=10, reclaim=5)
    settings = EvictionSettings((least,), transition_seconds=0)
    _, due = observe(Pressure(), settings, {NODEFS: Available(12, 100)}, 0.0)
    assert due is None
    pressure, due = observe(Pressure(), settings, {NODEFS: Available(9, 100)}, 0.0)
    assert due == least
    pressure, due = observe(pressure, settings, {NODEFS: Available(12, 100)}, 1.0)
    assert due == least
    pressure, due = observe(pressure, settings, {NODEFS: Available(15, 100)}, 2.0)
    assert due is None
    assert pressure.conditions(2.0, 0.5) == frozenset()


def test_only_soft_thresholds_leave_a_pod_time_and_no_more_than_it_wants():
    settings = EvictionSettings(max_pod_grace_seconds=20)
    assert grace_of(pod(terminationGracePeriodSeconds=30), HARD, settings) == 0
    assert grace_of(pod(terminationGracePeriodSeconds=30), SOFT, settings) == 20
    assert grace_of(pod(terminationGracePeriodSeconds=5), SOFT, settings) == 5


def test_under_pressure_a_node_takes_only_whom_it_may_take():
    memory, disk = frozenset({"MemoryPressure"}), frozenset({"DiskPressure"})
    idle = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    key = "node.kubernetes.io/memory-pressure"
    tolerant = {**idle, "spec": {**idle["spec"], "tolerations": [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}]}}  # fmt: skip
    assert why_not_taken(idle, frozenset()) == ""
    assert why_not_taken(idle, memory) == "The node had condition: [MemoryPressure]. "
    assert why_not_taken(tolerant, memory) == ""
    assert why_not_taken(pod(request="1Mi"), memory) == ""
    assert why_not_taken(pod(request="1Mi"), disk) == "The node had condition: [DiskPressure]. "
    assert why_not_taken(tolerant, memory | disk) == (
        "The node had condition: [DiskPressure MemoryPressure]. "
    )
    assert why_not_taken(pod(priority=2_000_000_000), disk) == ""
