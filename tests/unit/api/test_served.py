"""Which resources a release serves: by version and by --runtime-config."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.served import BadRuntimeConfig, served_resources
from sampan.version import MINORS


def served(minor, emulated="", **config):
    given = {key.replace("__", "/"): value for key, value in config.items()}
    with features.used(Release(minor, emulated, runtime_config=given)):
        return {f"{row.api_version}/{row.plural}" for row in served_resources()}


def refused(minor, key, value="true"):
    with (
        features.used(Release(minor, runtime_config={key: value})),
        pytest.raises(BadRuntimeConfig) as error,
    ):
        served_resources()
    return str(error.value)


POLICIES = "admissionregistration.k8s.io/{}/mutatingadmissionpolicies"


def test_a_version_serves_what_is_stable_in_it():
    """[V1]"""
    assert POLICIES.format("v1") not in served("1.35")
    assert POLICIES.format("v1") in served("1.36")
    assert not {name for name in served("1.36") if "beta" in name or "alpha" in name}


def test_what_is_not_stable_is_served_where_it_is_asked_for():
    """[V2]"""
    everything = served("1.36", api__all="true")
    assert {POLICIES.format(version) for version in ("v1", "v1beta1", "v1alpha1")} <= everything
    beta = served("1.36", api__beta="true")
    assert POLICIES.format("v1beta1") in beta
    assert POLICIES.format("v1alpha1") not in beta
    with features.used(Release("1.34", runtime_config={"storage.k8s.io/v1beta1": ""})):
        names = {row.api_version for row in served_resources() if row.group == "storage.k8s.io"}
    assert names == {"storage.k8s.io/v1", "storage.k8s.io/v1beta1"}


def test_one_resource_counts_more_than_its_version_and_that_more_than_all():
    given = {
        "api/beta": "true",
        "resource.k8s.io/v1beta1": "false",
        "resource.k8s.io/v1beta1/deviceclasses": "true",
    }
    with features.used(Release("1.35", runtime_config=given)):
        found = {row.plural for row in served_resources() if row.version == "v1beta1"}
    assert "deviceclasses" in found
    assert "resourceclaims" not in found
    assert "ipaddresses" in found


def test_what_a_version_has_removed_is_gone():
    assert "networking.k8s.io/v1beta1/ipaddresses" in served("1.36", api__all="true")
    assert "networking.k8s.io/v1beta1/ipaddresses" not in served("1.37", api__all="true")


def test_an_older_version_that_is_emulated_has_no_newer_apis():
    assert POLICIES.format("v1") not in served("1.37", "1.35")


def test_a_subresource_comes_with_its_version():
    for minor in MINORS:
        with features.used(Release(minor)):
            [row] = [row for row in served_resources() if row.plural == "csinodes"]
        assert bool(row.subresource("status")) is (minor == "1.37")


# As kube-apiserver v1.35.8 and v1.37.0 say them.
@pytest.mark.parametrize(("key", "value", "said"), [
    ("foo/v1", "true", "unknown api groups foo/v1"),
    ("apps/v9", "true", "group version apps/v9 that has not been registered"),
    ("apps", "true", "runtime-config invalid key apps"),
    ("a/b/c/d", "true", "runtime-config invalid key a/b/c/d"),
    ("api/all", "maybe", "invalid value api/all=maybe"),
    ("api/all", "false", "invalid runtime-config with only api/all=false"),
    ("apps/v1", "maybe",
     'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
    ("apps/v1/Deployments", "true",
     "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase "
     'plural, not "Deployments"'),
])  # fmt: skip
def test_what_cannot_be_served_is_told_in_upstreams_words(key, value, said):
    assert refused("1.35", key, value) == said


def test_what_is_not_here_is_refused_by_name():
    assert refused("1.35", "internal.apiserver.k8s.io/v1alpha1") == (
        "internal.apiserver.k8s.io/v1alpha1 cannot be served: sampan does not have it"
    )
    assert refused("1.35", "v1", "false") == "v1=false: sampan cannot do without it"
    assert refused("1.35", "api/ga", "false") == "api/ga=false: sampan cannot do without them"


def test_a_version_without_resources_may_be_named():
    assert served("1.35", batch__v1beta1="true") == served("1.35")


@pytest.mark.parametrize(("minor", "version"), [("1.34", "v1beta2"), ("1.35", "v1")])
def test_which_version_is_stored_changes_with_the_release(minor, version):
    with features.used(Release(minor, runtime_config={"api/all": "true"})):
        rows = [row for row in served_resources() if row.plural == "resourceclaims"]
        stored = {row.stored_in[1] or row.version for row in rows}
        assert len({row.storage_prefix for row in rows}) == 1
    assert stored == {version}
