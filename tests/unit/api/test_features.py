"""The features of this process: chosen once, asked for by name."""

import pytest

from sampan.api import features
from sampan.api.feature_gates import BadFeatureGates
from sampan.api.features import Release
from sampan.version import DEFAULT_MINOR, VERSION


def test_nothing_chosen_is_the_default_version():
    assert features.release() == Release()
    assert features.release().git_version == f"v{DEFAULT_MINOR}.0+sampan-{VERSION}"
    assert features.enabled("SidecarContainers")
    assert not features.enabled("CBORServingAndStorage")


def test_a_gate_can_be_set_for_a_while():
    with features.used(Release("1.36", gates={"DetectCacheInconsistency": False})):
        assert features.release().shown == "1.36"
        assert not features.enabled("DetectCacheInconsistency")
    assert features.enabled("DetectCacheInconsistency")
    assert features.release() == Release()


def test_what_cannot_be_chosen_changes_nothing():
    with pytest.raises(BadFeatureGates):
        features.use(Release("1.37", gates={"Foo": True}))
    assert features.release() == Release()


def test_an_emulated_version_is_the_one_that_is_shown():
    with features.used(Release("1.37", emulated="1.35")):
        assert features.release().shown == "1.35"
        assert features.release().git_version.startswith("v1.37.0")
        assert features.known()["HPAGeneration"].stage is None


def test_features_of_nodes_and_services_that_are_here_are_on():
    """[V2]"""
    here = {
        "AllowServiceExternalIPs", "CPUManagerPolicyOptions", "DisableCPUQuotaWithExclusiveCPUs",
        "GracefulNodeShutdownBasedOnPodPriority", "KubeletCrashLoopBackOffMax",
        "KubeletPodResourcesGet", "NodeSwap", "ServiceCIDRStatusFieldWiping",
        "TopologyManagerPolicyOptions",
    }  # fmt: skip
    with features.used(Release("1.37")):
        assert here <= features.all_enabled()
        assert not any(features.known()[name].can_be(False) for name in here)
