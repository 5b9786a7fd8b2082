import pytest

from sampan.api import features
from sampan.api.errors import Forbidden
from sampan.api.features import Release
from sampan.api.resources import CONFIG_MAPS, EVENTS, EVENTS_V1, NAMESPACES, PODS, SECRETS
from sampan.controllers.actions import NOTHING, Outcome, Patch, Update, deletion
from sampan.controllers.cluster.namespace import (
    NO_TROUBLES,
    Troubles,
    conditions,
    content_resources,
    plan,
)

NOW = 1_700_000_000.0


def namespace(deleted=True, finalizers=("kubernetes",), stated=()):
    meta = {"name": "ns", "uid": "n", "resourceVersion": "5"}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": meta,
        "spec": {"finalizers": list(finalizers)},
        "status": {"conditions": list(stated)},
    }


def thing(name, deleted=False, finalizers=(), grace=0):
    meta = {"name": name, "namespace": "ns", "uid": name, "finalizers": list(finalizers)}
    if deleted:
        meta |= {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": grace,
        }
    return {"metadata": meta}


def by_type(patch):
    stated = patch.patch["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in stated}


def test_a_living_namespace_is_left_alone():
    assert plan(namespace(deleted=False), {PODS: [thing("a")]}, NOW) is NOTHING


def test_an_empty_namespace_is_released():
    released = namespace()
    released["spec"]["finalizers"] = []
    wanted = [Update(NAMESPACES, released, subresource="finalize")]
    assert plan(namespace(), {PODS: [], SECRETS: []}, NOW).actions == wanted


def test_other_finalizers_of_the_namespace_stay_and_it_says_that_its_content_is_gone():
    held = namespace(finalizers=("kubernetes", "mine"))
    [patch] = plan(held, {PODS: []}, NOW).actions
    assert {status for status, _, _ in by_type(patch).values()} == {"False"}
    assert by_type(patch)["NamespaceContentRemaining"][1] == "ContentRemoved"
    stated = patch.patch["status"]["conditions"]
    held = namespace(finalizers=("kubernetes", "mine"), stated=stated)
    [update] = plan(held, {PODS: []}, NOW + 9).actions
    assert update.obj["spec"]["finalizers"] == ["mine"]
    assert plan(namespace(finalizers=("mine",), stated=stated), {PODS: []}, NOW).actions == []
    assert plan(namespace(finalizers=()), {PODS: [thing("a")]}, NOW) is NOTHING


def test_a_namespace_that_others_hold_loses_what_still_comes_into_it():
    planned = plan(namespace(finalizers=("mine",)), {PODS: [], SECRETS: [thing("s")]}, NOW)
    assert planned.actions == [deletion(SECRETS, thing("s"))]


def test_finalizers_in_the_namespace_s_metadata_hold_it_likewise():
    held = namespace()
    held["metadata"]["finalizers"] = ["mine"]
    [patch] = plan(held, {PODS: []}, NOW).actions
    assert by_type(patch)["NamespaceContentRemaining"][0] == "False"


def test_pods_go_first():
    content = {PODS: [thing("a"), thing("b")], SECRETS: [thing("s")]}
    assert plan(namespace(), content, NOW).actions == [
        deletion(PODS, thing("a")),
        deletion(PODS, thing("b")),
    ]


def test_everything_else_goes_when_the_pods_are_gone():
    content = {PODS: [], SECRETS: [thing("s")], CONFIG_MAPS: [thing("c")]}
    planned = plan(namespace(), content, NOW)
    assert planned.actions == [deletion(SECRETS, thing("s")), deletion(CONFIG_MAPS, thing("c"))]
    assert planned.again_seconds == 0.0


def test_what_is_being_deleted_is_not_deleted_again():
    planned = plan(namespace(), {PODS: [thing("a", deleted=True, grace=30)]}, NOW)
    assert planned.actions == []
    assert planned.again_seconds is None


def test_nothing_is_said_where_all_goes_at_once():
    planned = plan(namespace(), {PODS: [], SECRETS: [thing("s")]}, NOW)
    outcomes = [Outcome(action, thing("s")) for action in planned.actions]
    assert planned.then(outcomes) == []


def test_what_stays_is_said_in_the_conditions():
    content = {PODS: [], SECRETS: [thing("s"), thing("t", deleted=True, finalizers=["x/y"])]}
    planned = plan(namespace(), content, NOW)
    [deleted] = planned.actions
    stays = thing("s", deleted=True, finalizers=["x/y"])
    [patch] = planned.then([Outcome(deleted, stays)])
    assert isinstance(patch, Patch)
    assert patch.subresource == "status"
    assert by_type(patch) == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: secrets. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            # The one that was deleted just now shows its finalizer with the next look.
            "Some content in the namespace has finalizers remaining: x/y in 1 resource instances",
        ),
    }


def test_a_failure_is_said_in_the_conditions():
    planned = plan(namespace(), {PODS: [], SECRETS: [thing("s")]}, NOW)
    [patch] = planned.then([Outcome(planned.actions[0], error=Forbidden("no way"))])
    assert by_type(patch)["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: no way",
    )


def test_a_kind_that_could_not_be_listed_keeps_the_namespace_and_is_named():
    planned = plan(namespace(), {PODS: [], SECRETS: []}, NOW, Troubles(["secrets is forbidden"]))
    assert list(planned.actions) == []
    assert planned.again_seconds
    [patch] = planned.then([])
    assert by_type(patch)["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: secrets is forbidden",
    )


def test_conditions_are_written_only_when_they_change():
    waiting = {PODS: [thing("a", deleted=True, grace=30)]}
    [patch] = plan(namespace(), waiting, NOW).then([])
    stated = patch.patch["status"]["conditions"]
    assert plan(namespace(stated=stated), waiting, NOW + 60).then([]) == []


def test_another_message_is_no_transition():
    two = [(SECRETS, thing("s")), (SECRETS, thing("t"))]
    before = conditions([], two, NO_TROUBLES, NOW)
    after = conditions(before, two[:1], NO_TROUBLES, NOW + 60)
    assert [one["lastTransitionTime"] for one in after] == (
        [one["lastTransitionTime"] for one in before]
    )
    assert after != before
    well = conditions(before, [], NO_TROUBLES, NOW + 60)
    assert well[3]["lastTransitionTime"] != before[3]["lastTransitionTime"]


def test_foreign_conditions_are_kept():
    foreign = {"type": "Mine", "status": "True"}
    assert conditions([foreign], [], NO_TROUBLES, NOW)[0] == foreign


def test_every_kind_is_deleted_once_whatever_its_versions():
    resources = content_resources()
    assert PODS in resources
    assert EVENTS in resources
    assert EVENTS_V1 not in resources
    assert len({one.storage_prefix for one in resources}) == len(resources)


def test_a_server_that_does_not_say_what_it_serves_keeps_the_namespace():
    planned = plan(namespace(), {PODS: []}, NOW, Troubles(stale=["tea.example.com/v1"]))
    assert planned.actions == []
    assert planned.again_seconds
    [patch] = planned.then([])
    [condition] = [
        item
        for item in patch.patch["status"]["conditions"]
        if item["type"] == "NamespaceDeletionDiscoveryFailure"
    ]
    assert (condition["status"], condition["reason"]) == ("True", "DiscoveryFailed")
    assert condition["message"] == (
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of "
        "server APIs: tea.example.com/v1: stale GroupVersion discovery: tea.example.com/v1"
    )


@pytest.mark.kubernetes("1.37")
def test_kinds_behind_a_gate_are_looked_after_where_they_are_served():
    """Nothing is watched that is not there: it would be tried again and again, with a warning."""

    def has_requests():
        return any(row.plural == "podcertificaterequests" for row in content_resources())

    assert has_requests()
    with features.used(Release("1.35")):
        assert not has_requests()
