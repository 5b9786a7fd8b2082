from sampan.api.errors import Conflict
from sampan.api.resources import PODS
from sampan.controllers.actions import Create, Delete, Outcome, Record
from sampan.controllers.expectations import TIMEOUT_SECONDS, expectation, is_met

POD = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"}}
DELETED = {"metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def met(expected, revision=0, obj=None, now=0.0):
    return is_met(expected, lambda _: revision, lambda _resource, _key: obj, now)


def test_a_creation_is_expected_until_the_cache_reaches_its_revision():
    expected = expectation(Outcome(Create(PODS, {}), POD), 0.0)
    assert not met(expected, revision=6)
    assert met(expected, revision=7)


def test_a_deletion_is_expected_until_the_object_is_gone_or_going():
    expected = expectation(Outcome(Delete(PODS, "ns", "a", "u"), POD), 0.0)
    assert not met(expected, obj=POD)
    assert met(expected, obj=DELETED)
    assert met(expected, obj=None)
    assert met(expected, obj={"metadata": {**POD["metadata"], "uid": "another"}})


def test_an_expectation_is_given_up_in_the_end():
    expected = expectation(Outcome(Create(PODS, {}), POD), 10.0)
    assert not met(expected, now=9.0 + TIMEOUT_SECONDS)
    assert met(expected, now=10.0 + TIMEOUT_SECONDS)


def test_nothing_is_expected_of_failures_and_events():
    assert expectation(Outcome(Create(PODS, {}), error=Conflict("x")), 0.0) is None
    assert expectation(Outcome(Create(PODS, {})), 0.0) is None  # it was there already
    assert expectation(Outcome(Record({}, "Normal", "R", "m")), 0.0) is None
