"""api/resources.py: the table of kinds [A5, A8]."""

from sampan.api import resources


def test_storage_keys_follow_group_resource_namespace_and_name():
    """[A8]"""
    assert resources.PODS.storage_key("default", "web") == "/registry/pods/default/web"
    assert resources.NODES.storage_key("", "n1") == "/registry/nodes/n1"
    deployments = resources.by_plural("apps", "v1", "deployments")
    assert deployments is not None
    assert deployments.storage_key("a", "b") == "/registry/deployments.apps/a/b"


def test_no_storage_prefix_is_the_beginning_of_another():
    prefixes = {row.storage_prefix for row in resources.RESOURCES}
    for one in prefixes:
        assert not any(other != one and other.startswith(one) for other in prefixes)


def test_both_event_groups_and_both_autoscaler_versions_share_one_place():
    core = resources.by_plural("", "v1", "events")
    events = resources.by_plural("events.k8s.io", "v1", "events")
    assert core is not None
    assert events is not None
    assert core.storage_prefix == events.storage_prefix
    places = {row.storage_prefix for row in resources.RESOURCES if row.group == "autoscaling"}
    assert len(places) == 1


def test_kinds_are_found_by_api_version():
    assert resources.by_kind("v1", "Pod") is resources.PODS
    assert resources.by_kind("apps/v1", "Deployment") is resources.DEPLOYMENTS
    assert resources.by_kind("apps/v1", "Pod") is None
