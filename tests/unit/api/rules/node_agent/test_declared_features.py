"""What a node declares, and what a pod needs of it."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.rules.node_agent.declared_features import (
    declared,
    missing,
    needed_to_change,
    needed_to_run,
)

CPU = {"requests": {"cpu": "1"}}
MORE = {"requests": {"cpu": "2"}}
SETUP = {"name": "setup", "resources": CPU}
SIDE = {"name": "side", "restartPolicy": "Always", "resources": CPU}


@pytest.mark.kubernetes("1.37")
def test_a_node_declares_what_is_on_in_the_order_of_names():
    with features.used(Release("1.35")):
        assert declared() == ()
    names = declared()
    assert "RestartAllContainersOnContainerExits" in names
    assert list(names) == sorted(names)


@pytest.mark.parametrize(
    ("old", "new", "needed"),
    [
        ({}, {}, ()),
        ({"resources": {}}, {}, ()),
        ({"resources": CPU}, {"resources": MORE}, ("InPlacePodLevelResourcesVerticalScaling",)),
        (
            {"initContainers": [SETUP]},
            {"initContainers": [SETUP | {"resources": MORE}]},
            ("InPlacePodVerticalScalingInitContainers",),
        ),
        ({"initContainers": [SIDE]}, {"initContainers": [SIDE | {"resources": MORE}]}, ()),
    ],
)
def test_some_changes_need_a_feature(old, new, needed):
    assert needed_to_change(old, new) == needed


def test_host_network_with_users_of_its_own_needs_one_to_run():
    spec = {"hostNetwork": True, "hostUsers": False}
    assert needed_to_run(spec) == ("UserNamespacesHostNetworkSupport",)
    assert missing(needed_to_run(spec), ["Other"]) == "UserNamespacesHostNetworkSupport"
    assert missing(needed_to_run(spec), needed_to_run(spec)) == ""
