"""The plan of StatefulSets: pods by their ordinal, one after the other."""

import pytest

from sampan.api import features
from sampan.api.errors import Forbidden
from sampan.api.features import Release
from sampan.api.objects import name_of, time_text
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from sampan.controllers.actions import Create, Outcome, next_step
from sampan.controllers.workloads.revisions import HASH, current_revision
from sampan.controllers.workloads.stateful_pods import POD_NAME
from sampan.controllers.workloads.statefulset import Situation, plan
from tests.support.generators.workload_objects import (
    LABELS,
    NOW,
    made_objects,
    names,
    owner_of,
    pod_of,
    reasons,
    removed_names,
    status_in,
    without_trouble,
)


def stateful_set(replicas=3, policy="OrderedReady", **spec):
    return owner_of(
        STATEFUL_SETS, replicas=replicas, podManagementPolicy=policy, serviceName="web",
        **{"updateStrategy": {"type": "RollingUpdate"}, **spec},
    )  # fmt: skip


def pod(owner, ordinal, *, old=False, **words):
    revision = "web-old" if old else name_of(current_revision(STATEFUL_SETS, owner, ()).obj)
    labels = {**LABELS, HASH: revision, POD_NAME: f"web-{ordinal}"}
    return pod_of(STATEFUL_SETS, owner, f"web-{ordinal}", labels=labels, **words)


def planned(owner, *pods, claims=()):
    history = [current_revision(STATEFUL_SETS, owner, ()).obj]
    named = {name_of(one): one for one in claims}
    return plan(Situation(owner, pods, named.get, history), NOW)


@pytest.mark.parametrize(
    ("policy", "have", "expected"),
    [
        ("OrderedReady", [], ["web-0"]),
        ("OrderedReady", [0], ["web-1"]),
        ("OrderedReady", [0, 2], ["web-1"]),
        ("OrderedReady", [0, 1, 2], []),
        ("Parallel", [], ["web-0", "web-1", "web-2"]),
        ("Parallel", [1], ["web-0", "web-2"]),
    ],
)
def test_missing_pods_are_made_in_order_or_at_once(policy, have, expected):
    owner = stateful_set(policy=policy)
    assert names(made_objects(planned(owner, *(pod(owner, one) for one in have)))) == expected


def test_the_next_pod_waits_until_the_one_before_is_ready():
    owner = stateful_set()
    assert made_objects(planned(owner, pod(owner, 0, ready=False))) == []
    parallel = stateful_set(policy="Parallel")
    assert names(made_objects(planned(parallel, pod(parallel, 0, ready=False)))) == [
        "web-1",
        "web-2",
    ]


def test_a_pod_has_its_own_name_and_labels():
    [first] = made_objects(planned(stateful_set(1)))
    labels = first["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-0"
    assert labels["apps.kubernetes.io/pod-index"] == "0"
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("web-0", "web")


def test_ordinals_may_begin_elsewhere():
    owner = stateful_set(2, policy="Parallel", ordinals={"start": 5})
    assert names(made_objects(planned(owner))) == ["web-5", "web-6"]


def test_claims_are_made_before_their_pod():
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    owner = stateful_set(1, volumeClaimTemplates=[template])
    found = planned(owner)
    [claim] = found.actions
    assert (claim.resource, name_of(claim.obj)) == (PERSISTENT_VOLUME_CLAIMS, "data-web-0")
    assert names(made_objects(found)) == ["data-web-0", "web-0"]
    refused = next_step(found, [Outcome(claim, error=Forbidden("no quota"))])
    assert [action for action in refused.actions if isinstance(action, Create)] == []
    assert reasons(refused.actions) == ["FailedCreate", "FailedCreate"]


@pytest.mark.parametrize(
    ("policy", "expected"), [("OrderedReady", ["web-3"]), ("Parallel", ["web-3", "web-2"])]
)
def test_the_highest_goes_first(policy, expected):
    owner = stateful_set(2, policy=policy)
    assert removed_names(planned(owner, *(pod(owner, one) for one in range(4)))) == expected


def test_a_pod_that_ended_is_deleted_and_made_again():
    owner = stateful_set(1)
    assert removed_names(planned(owner, pod(owner, 0, phase="Failed"))) == ["web-0"]


def test_an_update_goes_from_the_highest_to_the_lowest():
    owner = stateful_set(3)
    old = [pod(owner, one, old=True) for one in range(3)]
    assert removed_names(planned(owner, *old)) == ["web-2"]
    half = [*old[:2], pod(owner, 2, ready=False)]
    assert removed_names(planned(owner, *half)) == [], "the one above is not ready yet"
    assert removed_names(planned(owner, *old[:2], pod(owner, 2))) == ["web-1"]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, ["web-2"]),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}, []),
        ({"type": "OnDelete"}, []),
    ],
)
def test_a_partition_holds_the_update_back(strategy, expected):
    owner = stateful_set(3, updateStrategy=strategy)
    assert (
        removed_names(planned(owner, *(pod(owner, one, old=True) for one in range(3)))) == expected
    )


BUDGET = Release("1.35", gates={"MaxUnavailableStatefulSet": True})


@pytest.mark.parametrize(
    ("release", "policy", "most", "broken", "expected"),
    [
        (Release("1.35"), "OrderedReady", 3, (), ["web-4"]),
        (BUDGET, "OrderedReady", 3, (), ["web-4", "web-3", "web-2"]),
        (BUDGET, "OrderedReady", "45%", (), ["web-4", "web-3"]),
        (BUDGET, "OrderedReady", "5%", (), ["web-4"]),
        (BUDGET, "Parallel", 2, (), ["web-4", "web-3"]),
        (BUDGET, "Parallel", 2, (0,), ["web-4"]),
        (BUDGET, "Parallel", 2, (0, 1), []),
        (Release("1.37"), "Parallel", 2, (), ["web-4", "web-3"]),
        (Release("1.37"), "Parallel", 2, (0,), ["web-0", "web-4"]),
        (Release("1.37"), "Parallel", 2, (0, 1, 3), ["web-3", "web-1", "web-0"]),
        (Release("1.37"), "Parallel", None, (1,), ["web-1"]),
    ],
)
def test_as_many_are_updated_as_may_be_unavailable(release, policy, most, broken, expected):
    """[V1] as stateful_set_control.go of v1.35 and v1.37"""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": most}}
    owner = stateful_set(5, policy=policy, updateStrategy=rolling)
    pods = [pod(owner, one, old=True, ready=one not in broken) for one in range(5)]
    with features.used(release):
        assert removed_names(planned(owner, *pods)) == expected


def test_a_partition_holds_the_broken_ones_back_too():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2, "maxUnavailable": 3}}
    owner = stateful_set(5, policy="Parallel", updateStrategy=rolling)
    pods = [pod(owner, one, old=one < 4, ready=one not in (0, 3)) for one in range(5)]
    with features.used(Release("1.37")):
        assert removed_names(planned(owner, *pods)) == ["web-3", "web-2"]


def test_the_status_counts_ready_available_and_updated_pods():
    owner = stateful_set(3, minReadySeconds=60)
    fresh = pod(owner, 1, ready_since=NOW - 10)
    found = planned(owner, pod(owner, 0), fresh, pod(owner, 2, ready=False))
    status = status_in(without_trouble(found))
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 2, 1)
    assert status["updatedReplicas"] == 3
    assert found.again_seconds == 50.0


def test_a_set_that_goes_makes_nothing():
    owner = stateful_set(3)
    owner["metadata"]["deletionTimestamp"] = time_text(NOW)
    assert list(planned(owner).actions) == []


# What each pod is, by ordinal: + healthy, - not ready, x terminating, . missing.
ORDER = [
    # (wanted, policy, pods, made, removed)
    (3, "OrderedReady", "...", ["web-0"], []),
    (3, "OrderedReady", "+-.", [], []),  # the next waits for the one before
    (3, "OrderedReady", "+x.", [], []),  # also while it goes
    (2, "OrderedReady", "++++", [], ["web-3"]),  # the highest first, one at a time
    (2, "OrderedReady", "+-++", [], []),  # nothing goes while one that stays is not healthy
    (2, "OrderedReady", "+++x", [], []),  # nor while another goes
    (2, "OrderedReady", "+++-", [], ["web-3"]),  # the broken one, if it is the first broken
    (2, "OrderedReady", "++--", [], []),  # not if another below it is broken
    (2, "OrderedReady", "++-+", [], ["web-3"]),  # a healthy one goes whatever is below
    (2, "Parallel", "+---", [], ["web-3", "web-2"]),
    (3, "Parallel", "-..", ["web-1", "web-2"], []),
]


@pytest.mark.parametrize(("wanted", "policy", "pods", "new", "gone"), ORDER)
def test_the_order_of_scaling(wanted, policy, pods, new, gone):
    """[W3] As the rules of ordered pod management."""
    owner = stateful_set(wanted, policy=policy)
    have = [
        pod(owner, ordinal, ready=mark == "+", deleted=mark == "x")
        for ordinal, mark in enumerate(pods)
        if mark != "."
    ]
    found = planned(owner, *have)
    assert (names(made_objects(found)), removed_names(found)) == (new, gone)
