"""The plan of Deployments: which sets to make, to size and to forget."""

import pytest

from sampan.api.objects import copy_of, name_of, time_text
from sampan.api.resources import DEPLOYMENTS, REPLICA_SETS
from sampan.controllers.actions import Patch
from sampan.controllers.workloads.deployment import Situation, plan
from sampan.controllers.workloads.deployment_sets import REVISION, new_replica_set
from sampan.controllers.workloads.pod_control import controller_reference
from tests.support.generators.workload_objects import (
    NOW,
    made_objects,
    owner_of,
    reasons,
    removed_names,
    status_in,
    without_trouble,
)


def deployment(replicas=3, image="new", surge=1, unavailable=0, **spec):
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    words = {"strategy": strategy, "progressDeadlineSeconds": 600, **spec}
    found = owner_of(DEPLOYMENTS, replicas=replicas, **words)
    found["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return found


def replica_set(owner, image, size, *, available=None, number=1):
    """The set that the Deployment made when its image was this one."""
    at_the_time = copy_of(owner)
    at_the_time["spec"]["template"]["spec"]["containers"][0]["image"] = image
    found = new_replica_set(at_the_time, (), size)
    meta = found["metadata"]
    meta |= {"uid": image, "creationTimestamp": time_text(NOW - 1000 + number)}
    meta["ownerReferences"] = [controller_reference(DEPLOYMENTS, owner)]
    meta["annotations"] = {**(meta.get("annotations") or {}), REVISION: str(number)}
    ready = size if available is None else available
    counts = ("replicas", "readyReplicas", "availableReplicas")
    found["status"] = dict(zip(counts, (size, ready, ready), strict=True))
    return found


def planned(owner, *sets, **words):
    return plan(Situation(owner, sets, **words), NOW)


def sizes(found):
    """Set → the size that the plan gives it."""
    return {
        action.name: action.patch["spec"]["replicas"]
        for action in found.actions
        if isinstance(action, Patch)
        and action.resource is REPLICA_SETS
        and "replicas" in (action.patch.get("spec") or {})
    }


def after_bookkeeping(owner, *sets):
    """The plan when annotations, which come first, are as they should be."""
    for _ in range(3):
        found = planned(owner, *sets)
        notes = [
            (one, action.patch["metadata"]["annotations"])
            for action in found.actions
            if isinstance(action, Patch) and "spec" not in action.patch
            for one in (owner, *sets)
            if name_of(one) == action.name
        ]
        if not notes:
            break
        for one, annotations in notes:
            one["metadata"].setdefault("annotations", {}).update(annotations)
    return found


def rolled(owner, *sets):
    return sizes(after_bookkeeping(owner, *sets))


def test_a_new_deployment_makes_its_set_whole():
    found = planned(deployment(3))
    [new] = made_objects(found)
    assert (new["spec"]["replicas"], new["metadata"]["annotations"][REVISION]) == (3, "1")
    assert name_of(new).startswith("web-")
    after = without_trouble(found)
    assert "ScalingReplicaSet" in reasons(after)
    kinds = {one["type"]: one for one in status_in(after)["conditions"]}
    assert kinds["Progressing"]["reason"] == "NewReplicaSetCreated"


def test_a_new_template_starts_with_the_surge_only():
    owner = deployment(3)
    [new] = made_objects(planned(owner, replica_set(owner, "old", 3)))
    assert (new["spec"]["replicas"], new["metadata"]["annotations"][REVISION]) == (1, "2")


@pytest.mark.parametrize(
    ("surge", "unavailable", "old", "new", "available", "expected"),
    [
        (1, 0, 3, 1, 0, {}),  # the new pod is not available yet
        (1, 0, 3, 1, 1, {"old": 2}),
        (1, 0, 2, 1, 1, {"new": 2}),
        (1, 0, 1, 3, 3, {"old": 0}),
        (0, 1, 3, 0, 0, {"old": 2}),
        (0, 1, 2, 0, 0, {"new": 1}),
        (2, 1, 3, 2, 0, {"old": 2}),
    ],
)
def test_a_rollout_keeps_its_bounds(surge, unavailable, old, new, available, expected):
    owner = deployment(3, surge=surge, unavailable=unavailable)
    before = replica_set(owner, "old", old)
    after = replica_set(owner, "new", new, available=available, number=2)
    named = {name_of(before): "old", name_of(after): "new"}
    found = rolled(owner, before, after)
    assert {named[name]: size for name, size in found.items()} == expected


def test_recreate_waits_until_the_old_pods_are_gone():
    owner = deployment(3, strategy={"type": "Recreate"})
    old = replica_set(owner, "old", 3)
    assert list(rolled(owner, old).values()) == [0]
    empty = replica_set(owner, "old", 0)
    assert made_objects(planned(owner, empty, old_pods_run=True)) == []
    [new] = made_objects(planned(owner, empty))
    assert new["spec"]["replicas"] == 3


def test_a_paused_deployment_makes_no_set_but_scales_the_one_it_has():
    owner = deployment(5, image="newer", paused=True)
    current = replica_set(owner, "new", 3)
    found = planned(owner, current)
    assert made_objects(found) == []
    assert list(rolled(owner, current).values()) == [5]
    kinds = {one["type"]: one for one in status_in(without_trouble(found))["conditions"]}
    assert kinds["Progressing"]["reason"] == "DeploymentPaused"


def test_old_sets_beyond_the_limit_go_when_all_is_done():
    owner = deployment(1, revisionHistoryLimit=1)
    old = [replica_set(owner, f"old{number}", 0, number=number) for number in range(3)]
    current = replica_set(owner, "new", 1, number=9)
    found = after_bookkeeping(owner, *old, current)
    assert sorted(removed_names(found)) == sorted(name_of(one) for one in old[:2])


def test_a_deployment_that_selects_everything_only_complains():
    found = planned(deployment(selector={}))
    assert reasons(found.actions) == ["SelectingAll"]


def test_a_deployment_that_goes_only_reports():
    owner = deployment(3)
    owner["metadata"]["deletionTimestamp"] = time_text(NOW)
    found = planned(owner, replica_set(owner, "old", 3))
    assert list(found.actions) == []
    assert status_in(without_trouble(found))["replicas"] == 3
