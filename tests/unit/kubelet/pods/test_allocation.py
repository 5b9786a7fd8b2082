"""[N6] What a pod was given, and whether it may have more."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.kubelet.contracts.resize_state import Pending
from sampan.kubelet.pods.allocation import (
    Allocations,
    allocation_of,
    resize_text,
    turn,
    why_not,
    with_allocation,
)
from sampan.kubelet.pods.fit import NodeRoom

ROOM = NodeRoom("n", {}, frozenset(), {"cpu": "4", "memory": "4Gi", "pods": "10"})


def pod(cpu="1", uid="1", **annotations):
    requests = {"cpu": cpu, "example.com/gpu": "1"}
    return {
        "metadata": {"name": "web", "uid": uid, "generation": 2, "annotations": annotations},
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"requests": requests}}],
            "initContainers": [{"name": "once", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


@pytest.mark.kubernetes("1.37")
def test_only_cpu_and_memory_are_remembered():
    main = {"main": {"requests": {"cpu": "1"}}}
    assert allocation_of(pod()) == {"once": {"requests": {"cpu": "1"}}, **main}
    with features.used(Release("1.35")):
        assert allocation_of(pod()) == main, "of lasting containers"


def test_a_pod_runs_with_what_it_was_given():
    asked = pod("3")
    given = with_allocation(asked, allocation_of(pod("1")))
    resources = given["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"example.com/gpu": "1", "cpu": "1"}}
    assert asked == pod("3"), "what came from a cache is never changed"
    assert with_allocation(asked, allocation_of(asked)) is asked
    assert with_allocation(asked, None) is asked


def test_what_was_given_nothing_has_nothing_yet():
    """A resize may ask for a container that had no resources, and be deferred."""
    before, asked = pod("1"), pod("1")
    for one, resources in ((before, {}), (asked, {"limits": {"memory": "64Mi"}})):
        one["spec"]["containers"].append({"name": "other", "resources": resources})
    given = with_allocation(asked, allocation_of(before))
    assert given["spec"]["containers"][1] == {"name": "other", "resources": {}}
    assert given["spec"]["initContainers"] == asked["spec"]["initContainers"]


@pytest.mark.parametrize(
    ("wanted", "others", "pending"),
    [
        (pod("3"), [], None),
        (
            pod("5"),
            [],
            Pending(
                "Infeasible",
                "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000",
                2,
            ),
        ),
        (
            pod("3", **{"kubernetes.io/config.source": "file"}),
            [],
            Pending("Infeasible", "In-place resize of static-pods is not supported", 2),
        ),
    ],
    ids=["fits", "never", "static"],
)
def test_what_can_be_given(wanted, others, pending):
    room = NodeRoom("n", {}, frozenset(), {**ROOM.allocatable, "example.com/gpu": "4"})
    assert why_not(wanted, others, room) == pending


def test_resizes_have_their_turn_as_upstream_sorts_them():
    shrinks = turn(pod("1"), pod("2"))
    important = pod("3")
    important["spec"]["priority"] = 7
    whole = pod("3")
    whole["spec"]["resources"] = {"limits": {"cpu": "3", "memory": "1Gi"}}
    whole["spec"]["resources"]["requests"] = whole["spec"]["resources"]["limits"]
    turns = [shrinks, turn(important, pod()), turn(whole, pod()), turn(pod("3"), pod())]
    assert sorted(turns) == turns
    assert len(set(turns)) == 4


def test_what_others_hold_is_given_later():
    room = NodeRoom("n", {}, frozenset(), {**ROOM.allocatable, "example.com/gpu": "4"})
    found = why_not(pod("3"), [pod("2", uid="2")], room)
    assert found == Pending(
        "Deferred",
        "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
        2,
    )


@pytest.mark.parametrize(
    ("name", "pinned", "message"),
    [
        ("cpu", {"cpu": "X"}, "Resize is infeasible for Guaranteed Pods alongside X"),
        ("cpu", {"memory": "X"}, ""),
        ("memory", {"memory": "X"}, "Resize is infeasible for Guaranteed Pods alongside X"),
    ],
)
def test_what_is_pinned_is_not_resized(name, pinned, message):
    """[H5, N6]"""

    def guaranteed(amounts):
        resources = {"requests": amounts, "limits": amounts}
        return {
            "metadata": {"uid": "1", "name": "p", "generation": 2},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
        }

    before = {"cpu": "1", "memory": "1Gi"}
    room = NodeRoom("n", {}, frozenset(), {"cpu": "4", "memory": "8Gi", "pods": "9"}, pinned=pinned)
    wanted = guaranteed({**before, name: {"cpu": "2", "memory": "2Gi"}[name]})
    found = why_not(wanted, [], room, allocation_of(guaranteed(before)))
    assert found == (Pending("Infeasible", message, 2) if message else None)


def test_the_checkpoint_is_the_truth_after_a_restart(tmp_path):
    path = str(tmp_path / "root" / "allocated_pods_state")
    before = Allocations(path)
    before.give(pod("1"))
    before.give(pod("1", uid="2"))
    after = Allocations(path)
    assert after.applied(pod("3"))["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    after.keep_only(["1"])
    after.forget("1")
    assert Allocations(path).of("1") is None
    assert Allocations(path).of("2") is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"{not json"])
def test_a_broken_checkpoint_is_as_none(tmp_path, content):
    (tmp_path / "state").write_bytes(content)
    assert Allocations(str(tmp_path / "state")).of("1") is None


@pytest.mark.kubernetes("1.37")
def test_an_event_tells_what_each_container_is_to_have():
    assert resize_text(pod(), 2, "why") == (
        '{"initContainers":[{"name":"once","resources":{"requests":{"cpu":"1"}}}],'
        '"containers":[{"name":"main","resources":{"requests":{"cpu":"1","example.com/gpu":"1"}}}],'
        '"generation":2,"error":"why"}'
    )


def test_a_pod_that_asks_for_what_it_has_is_not_looked_into_again():
    """A resize is a new spec: it is noticed; a new status is not."""
    allocations, asked = Allocations(), pod("1")
    allocations.give(asked)
    assert allocations.applied(asked) is asked
    running = {**asked, "status": {"phase": "Running"}}
    assert allocations.applied(running) is running
    resized = allocations.applied(pod("2"))
    assert resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    allocations.give(pod("2"))
    assert allocations.applied(asked) is not asked
