"""[N5] A critical pod makes room for itself, as upstream's preemption does."""

import pytest

from sampan.kubelet.pods.fit import NodeRoom
from sampan.kubelet.pods.preempt import victims

ROOM = NodeRoom("n", {}, frozenset(), {"cpu": "4", "memory": "4Gi", "pods": "4"})


def pod(name, cpu="", *, limit="", priority=0):
    resources = {}
    if cpu:
        resources["requests"] = {"cpu": cpu, "memory": "1Mi"}
    if limit:
        resources["limits"] = {"cpu": limit, "memory": "1Mi"}
    container = {"name": "c", "image": "i", "resources": resources}
    return {
        "metadata": {"name": name, "uid": name},
        "spec": {"containers": [container], "priority": priority},
    }


CRITICAL = pod("critical", "2", priority=2_000_000_000)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ([pod("a", "1")], []),
        ([pod("a", "3")], ["a"]),
        ([pod("small", "1"), pod("large", "3")], ["large"]),
        ([pod("one", "1"), pod("two", "2"), pod("three", "1")], ["two"]),
        # What was guaranteed its share goes last.
        ([pod("guaranteed", "2", limit="2"), pod("burstable", "2")], ["burstable"]),
        # Only a place is missing: nobody who asked for something has to go.
        ([pod("a", "1"), pod("b", "1"), pod("c"), pod("d")], ["c"]),
        ([pod("other", "4", priority=2_000_000_000)], None),
        ([pod("alike", "4", priority=2_000_000_001), pod("a")], None),
    ],
)
def test_who_has_to_go(others, chosen):
    found = victims(CRITICAL, others, ROOM)
    assert (None if found is None else [one["metadata"]["name"] for one in found]) == chosen
