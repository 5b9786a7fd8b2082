"""When a node is under pressure, and which pod has to go [N18]."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.eviction import (
    MEMORY,
    NODEFS,
    Available,
    Candidate,
    EvictionSettings,
    Pressure,
    Threshold,
    has_storage_limits,
    looked,
    message,
    ranked,
    request_of,
    storage_excess,
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
    pressure, due = looked(Pressure(), SETTINGS, PLENTY, 0.0)
    assert due is None
    assert pressure.conditions(0.0, 300) == frozenset()


def test_a_soft_threshold_waits_for_its_grace_and_a_hard_one_does_not():
    low = {**PLENTY, MEMORY: Available(300 << 20, 8 * GB)}
    pressure, due = looked(Pressure(), SETTINGS, low, 0.0)
    assert due is None
    assert pressure.conditions(0.0, 300) == {"MemoryPressure"}
    pressure, due = looked(pressure, SETTINGS, low, 29.0)
    assert due is None
    _, due = looked(pressure, SETTINGS, low, 30.0)
    assert due == SOFT
    _, due = looked(Pressure(), SETTINGS, {MEMORY: Available(1, 8 * GB)}, 0.0)
    assert due == HARD


def test_a_condition_stays_for_a_while_after_its_cause_is_gone():
    low = {NODEFS: Available(9, 100)}
    pressure, due = looked(Pressure(), SETTINGS, low, 0.0)
    assert due is not None
    pressure, due = looked(pressure, SETTINGS, PLENTY, 10.0)
    assert due is None
    assert pressure.conditions(10.0, 300) == {"DiskPressure"}
    pressure, _ = looked(pressure, SETTINGS, PLENTY, 301.0)
    assert pressure.conditions(301.0, 300) == frozenset()


def test_beyond_the_request_comes_first_then_low_priority_then_the_most_beyond():
    order = ranked(
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
        one.usage["memory"] <= request_of(one.pod, "memory") for one in ranked(candidates, "memory")
    ]
    assert within == sorted(within)


def test_the_message_is_upstreams():
    chosen = Candidate(pod(request="1Mi"), {"memory": GB}, {"c": 2 << 20})
    assert message(HARD, Available(50 << 20, 8 * GB), chosen) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container c was using 2048Ki, request is 1Mi, has larger consumption of memory. "
    )


def test_a_pod_that_keeps_its_storage_limits_stays_and_others_go():
    limits = {"limits": {"ephemeral-storage": "1Mi"}}
    limited = {
        "spec": {
            "containers": [{"name": "c", "resources": limits}],
            "volumes": [
                {"name": "small", "emptyDir": {"sizeLimit": "1Ki"}},
                {"name": "ram", "emptyDir": {"medium": "Memory"}},
            ],
        }
    }
    assert has_storage_limits(limited)
    assert not has_storage_limits(pod())
    assert storage_excess(limited, {"small": 1000, "ram": 9 << 20}, {"c": 1000}) == ""
    assert storage_excess(limited, {"small": 2000}, {}) == (
        'Usage of EmptyDir volume "small" exceeds the limit "1Ki". '
    )
    assert "total limit of containers 1Mi" in storage_excess(limited, {"small": 9}, {"c": 2 << 20})
