import math

from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import Forbidden
from sampan.api.objects import time_text
from sampan.api.resources import PODS, REPLICA_SETS
from sampan.api.rules.selectors import match_labels
from sampan.controllers.actions import Create, Outcome, deletion
from sampan.controllers.workloads.pod_control import (
    available_at,
    claim,
    controller_reference,
    first_to_go,
    pod_events,
    pod_from_template,
)

NOW = 1_700_000_000.0
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "ns", "uid": "o"},
}
REFERENCE = controller_reference(REPLICA_SETS, OWNER)


def pod(name, labels=None, owned=False, **status):
    meta = {"name": name, "namespace": "ns", "uid": name, "labels": labels or {}}
    meta["ownerReferences"] = [REFERENCE] if owned else []
    return {"metadata": meta, "spec": {}, "status": status}


def ready(since):
    return [{"type": "Ready", "status": "True", "lastTransitionTime": time_text(since)}]


def test_a_pod_is_made_from_the_template_and_its_owner():
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"containers": [{"name": "x"}]},
    }
    made = pod_from_template(template, OWNER, REFERENCE)
    assert made["metadata"] == {
        "generateName": "web-",
        "namespace": "ns",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "ownerReferences": [REFERENCE],
    }
    made["spec"]["hostname"] = "a"
    assert template["spec"] == {"containers": [{"name": "x"}]}


def test_availability_needs_readiness_for_long_enough():
    assert available_at(pod("a"), 10) is None
    assert available_at(pod("a", conditions=ready(NOW)), 10) == NOW + 10
    assert available_at(pod("a", conditions=ready(NOW)), 0) == -math.inf


def test_claiming_adopts_what_matches_and_releases_what_does_not():
    selector = match_labels({"app": "web"})
    mine, lost = pod("mine", {"app": "web"}, owned=True), pod("lost", {}, owned=True)
    found, other = pod("found", {"app": "web"}), pod("other", {})
    claimed = claim(PODS, OWNER, REFERENCE, selector, [mine, lost], [found, other])
    assert claimed.owned == [mine, found]
    released, adopted = claimed.actions
    assert (released.name, released.patch["metadata"]["ownerReferences"]) == ("lost", [])
    assert (adopted.name, adopted.patch["metadata"]["ownerReferences"]) == ("found", [REFERENCE])


def test_one_that_is_being_deleted_adopts_nothing():
    owner = {**OWNER, "metadata": {**OWNER["metadata"], "deletionTimestamp": "x"}}
    claimed = claim(PODS, owner, REFERENCE, match_labels({}), [], [pod("found")])
    assert (claimed.owned, claimed.actions) == ([], [])


def test_the_order_in_which_pods_go():
    unbound = pod("unbound", phase="Pending")
    pending = {**pod("pending", phase="Pending"), "spec": {"nodeName": "n"}}
    unready = {**pod("unready", phase="Running"), "spec": {"nodeName": "n"}}
    young = {**pod("young", phase="Running", conditions=ready(NOW - 10)), "spec": {"nodeName": "n"}}
    old = {**pod("old", phase="Running", conditions=ready(NOW - 9999)), "spec": {"nodeName": "n"}}
    lonely = {**old, "spec": {"nodeName": "far"}}
    dear = {**young, "metadata": {**young["metadata"], "name": "dear"}}
    cost = {"controller.kubernetes.io/pod-deletion-cost": "100"}
    dear["metadata"]["annotations"] = cost
    ordered = [unbound, pending, unready, young, old, lonely, dear]
    neighbours = {"n": 5, "far": 1}
    assert first_to_go(list(reversed(ordered)), 6, neighbours, NOW) == ordered[:6]


@given(st.integers(0, 5), st.integers(0, 8))
def test_never_more_go_than_asked_for(have, count):
    pods = [pod(str(number)) for number in range(have)]
    assert len(first_to_go(pods, count, {}, NOW)) == min(have, count)


def test_events_tell_what_became_of_pods():
    outcomes = [
        Outcome(Create(PODS, {}), pod("web-abc")),
        Outcome(Create(PODS, {}), error=Forbidden("quota")),
        Outcome(Create(PODS, {})),  # in a namespace that goes away
        Outcome(deletion(PODS, pod("web-xyz"))),
        Outcome(Create(REPLICA_SETS, {}), OWNER),
    ]
    told = [(one.type, one.reason, one.message) for one in pod_events(OWNER, outcomes)]
    assert told == [
        ("Normal", "SuccessfulCreate", "Created pod: web-abc"),
        ("Warning", "FailedCreate", "Error creating: quota"),
        ("Normal", "SuccessfulDelete", "Deleted pod: web-xyz"),
    ]
