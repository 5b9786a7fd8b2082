"""Counted by what pods differ in, a set's status is the same as counted pod by pod."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sampan.api.objects import labels_of
from sampan.api.resources import REPLICA_SETS
from sampan.api.rules.selectors import match_labels
from sampan.controllers.workloads.pod_control import available_at, is_active, is_terminating
from sampan.controllers.workloads.replica_counts import (
    active_count,
    by_owner,
    matching,
    next_availability,
    replica_of,
    status_counts,
    terminating_count,
)
from tests.support.generators.workload_objects import LABELS, NOW, owner_of, pod_of

OWNER = owner_of(REPLICA_SETS)
WORDS = st.fixed_dictionaries({
    "ready": st.booleans(),
    "deleted": st.booleans(),
    "phase": st.sampled_from(["Pending", "Running", "Failed", "Succeeded"]),
    "ready_since": st.sampled_from([NOW - 100, NOW - 20, NOW - 5]),
    "labels": st.sampled_from([LABELS, {"app": "other"}, {**LABELS, "more": "yes"}]),
})  # fmt: skip
PODS = st.lists(WORDS, max_size=12).map(
    lambda found: [
        pod_of(REPLICA_SETS, OWNER, f"p{number}", **words) for number, words in enumerate(found)
    ]
)


@given(PODS, st.sampled_from([0, 10, 50]))
def test_the_status_is_that_of_a_recount(pods, seconds):
    replicas = Counter(map(replica_of, pods))
    active = [pod for pod in pods if is_active(pod)]
    times = [available_at(pod, seconds) for pod in active]
    ready = [moment for moment in times if moment is not None]
    template = {**LABELS, "more": "yes"}
    counted = status_counts(replicas, template, seconds, NOW)
    assert counted.get("replicas") == active_count(replicas) == len(active)
    assert counted.get("readyReplicas", 0) == len(ready)
    assert counted.get("availableReplicas", 0) == sum(moment <= NOW for moment in ready)
    whole = [pod for pod in active if template.items() <= labels_of(pod).items()]
    assert counted.get("fullyLabeledReplicas", 0) == len(whole)
    assert terminating_count(replicas) == sum(is_terminating(pod) for pod in pods)
    coming = [moment - NOW for moment in ready if moment > NOW]
    assert next_availability(replicas, seconds, NOW) == (min(coming) if coming else None)


@given(PODS)
def test_those_that_a_selector_matches_are_counted_apart(pods):
    found = matching(Counter(map(replica_of, pods)), match_labels(LABELS))
    mine = [pod for pod in pods if labels_of(pod)["app"] == "web"]
    assert found == Counter(map(replica_of, mine))


def test_a_pod_without_a_controller_is_nobodys():
    pod = pod_of(REPLICA_SETS, OWNER, "p")
    assert by_owner(pod) == ("o", replica_of(pod)._replace(ready_since=-math.inf))
    pod["metadata"]["ownerReferences"] = []
    assert by_owner(pod) is None


@given(PODS)
def test_without_a_minimum_nothing_depends_on_since_when_pods_are_ready(pods):
    timed = Counter(map(replica_of, pods))
    tallied = Counter(found[1] for pod in pods if (found := by_owner(pod)) is not None)
    assert status_counts(tallied, LABELS, 0, NOW) == status_counts(timed, LABELS, 0, NOW)
    assert terminating_count(tallied) == terminating_count(timed)
