from sampan.api.resources import SERVICE_ACCOUNTS
from sampan.controllers.access.serviceaccount import plan
from sampan.controllers.actions import NOTHING, Create

ACTIVE = {"metadata": {"name": "ns"}}
TERMINATING = {"metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def test_a_namespace_without_the_default_account_gets_one():
    [action] = plan(ACTIVE, None).actions
    assert isinstance(action, Create)
    assert action.resource == SERVICE_ACCOUNTS
    assert action.obj["metadata"] == {"name": "default", "namespace": "ns"}


def test_one_that_is_there_is_left_alone():
    assert plan(ACTIVE, {"metadata": {"name": "default"}}) is NOTHING


def test_a_terminating_namespace_gets_none():
    assert plan(TERMINATING, None) is NOTHING
