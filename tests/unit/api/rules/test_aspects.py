import pytest

from sampan.api.rules.aspects import (
    ANYTHING,
    CAME,
    DELETION,
    LABELS,
    NO_CONTROLLER,
    NODE,
    OFFERED,
    OTHER,
    OWNERS,
    PHASE,
    SPEC,
    STATUS,
    WENT,
    Interest,
    controller_kind,
    interest_of,
    looks_at,
    touched,
)

POD = {
    "metadata": {"name": "a", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "hostname": "a"},
    "status": {"phase": "Running", "podIP": "10.0.0.1"},
}


def with_(part, **fields):
    return {**POD, part: {**POD[part], **fields}}


@pytest.mark.parametrize(
    ("new", "aspects"),
    [
        (POD, 0),
        (with_("metadata", annotations={"a": "b"}, resourceVersion="2"), 0),
        (with_("metadata", labels={"app": "db"}), LABELS),
        (with_("metadata", ownerReferences=[{"uid": "1"}]), OWNERS),
        (with_("metadata", deletionTimestamp="2026-01-01T00:00:00Z"), DELETION),
        (with_("metadata", finalizers=["example.com/a"]), DELETION),
        (with_("spec", nodeName="n2"), NODE),
        (with_("spec", hostname="b"), SPEC),
        (with_("spec", nodeName="n2", hostname="b"), NODE | SPEC),
        (with_("status", phase="Failed"), PHASE),
        (with_("status", podIP=""), STATUS),
        ({"metadata": POD["metadata"], "status": POD["status"]}, NODE | SPEC),
        ({**POD, "spec": "of a custom kind"}, NODE | SPEC),
        ({"metadata": POD["metadata"]}, NODE | SPEC | PHASE | STATUS),
    ],
)
def test_a_change_touches_what_it_changes_whichever_way_it_goes(new, aspects):
    assert touched(POD, new) == touched(new, POD) == aspects | OTHER


def test_what_comes_and_what_goes():
    assert touched(None, POD) == CAME | OTHER
    assert touched(POD, None) == WENT | OTHER


def owned_by(kind):
    references = [{"kind": "Other"}, {"kind": kind, "controller": True}]
    return with_("metadata", ownerReferences=references)


def test_the_kind_of_its_controller_is_certain_unless_its_owners_change():
    job = owned_by("Job")
    assert controller_kind(OTHER, job, job) == "Job"
    assert controller_kind(WENT | OTHER, job, None) == "Job"
    assert controller_kind(OTHER, POD, POD) == NO_CONTROLLER
    assert controller_kind(OWNERS | OTHER, job, POD) is None


def test_who_cares_for_what_its_kind_has_is_asked_about_that_and_about_what_it_may_adopt():
    interest = Interest(ANYTHING, "Job", OFFERED)
    assert interest.is_met(OTHER, "Job")
    assert not interest.is_met(CAME | OTHER, "ReplicaSet")
    assert interest.is_met(CAME | OTHER, NO_CONTROLLER)
    assert not interest.is_met(STATUS | OTHER, NO_CONTROLLER)
    assert interest.is_met(OWNERS | OTHER, None)
    phases = Interest(PHASE, "Job")
    assert phases.is_met(PHASE | OTHER, "Job")
    assert not phases.is_met(CAME | OTHER, NO_CONTROLLER)


def test_who_says_nothing_is_asked_about_everything():
    def said_nothing():
        pass

    @looks_at(PHASE)
    def said_something():
        pass

    assert interest_of(said_nothing).is_met(OTHER, NO_CONTROLLER)
    assert not interest_of(said_something).is_met(STATUS | OTHER, NO_CONTROLLER)
    assert interest_of(said_something).is_met(PHASE | OTHER, "Job")
