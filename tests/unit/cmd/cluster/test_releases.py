"""cmd/cluster/releases.py: which Kubernetes a process is."""

import pytest

from sampan.api import features
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.releases import KEPT, kept_minor, minor_of, release_of, use_release
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ReleaseChoices
from sampan.version import DEFAULT_MINOR


@pytest.fixture(autouse=True)
def default_version():
    """Whatever a test chooses is over with it."""
    with features.used(features.Release()):
        yield


def refused(kept="", **chosen):
    with pytest.raises(CannotStart) as error:
        use_release(ReleaseChoices(**chosen), kept)
    return str(error.value)


@pytest.mark.parametrize("text", ["1.36", "v1.36", "v1.36.2"])
def test_a_version_is_a_minor_one(text):
    assert minor_of(text) == "1.36"


@pytest.mark.parametrize("text", ["1.33", "2.0", "latest", "1.36-rc.1", ""])
def test_a_version_that_is_not_here_says_which_are(text):
    with pytest.raises(CannotStart, match=r"there are 1\.34, 1\.35, 1\.36 and 1\.37"):
        minor_of(text)


def test_nothing_chosen_is_what_the_cluster_was_else_the_default():
    assert release_of(ReleaseChoices()).minor == DEFAULT_MINOR
    assert release_of(ReleaseChoices(), "1.34").minor == "1.34"
    assert release_of(ReleaseChoices("1.36"), "1.36").minor == "1.36"


def test_a_cluster_keeps_its_version():
    assert refused("1.34", kubernetes_version="1.36") == (
        "this cluster is Kubernetes v1.34: `sampan upgrade --to 1.36` makes it v1.36"
    )
    assert refused("1.36", kubernetes_version="1.34") == (
        "this cluster is Kubernetes v1.36: it cannot go back to v1.34"
    )


# As kube-apiserver v1.35.8 says them.
@pytest.mark.parametrize(("text", "said"), [
    ("1.36", "emulation version 1.36 is not between [1.32, 1.35.0]"),
    ("1.31", "emulation version 1.31 is not between [1.32, 1.35.0]"),
    ("kube=1.34.1", "patch version not allowed, got: kube=1.34.1"),
    ("foo=1.34", "component not registered: foo"),
    ("abc", 'could not parse "abc" as version'),
    ("1.33", "there is nothing of 1.33 here"),
])  # fmt: skip
def test_an_emulated_version_must_be_one_that_can_be(text, said):
    chosen = {"kubernetes_version": "1.35", "emulated_version": text}
    assert refused(**chosen) == f"--emulated-version: {said}"


def test_an_emulated_version_may_name_its_component():
    chosen = ReleaseChoices("1.37", "kube=1.35")
    assert release_of(chosen).emulated == "1.35"
    assert release_of(ReleaseChoices("1.37", "1.37")).emulated == ""


def test_gates_and_apis_may_be_given_in_pieces():
    chosen = ReleaseChoices(
        feature_gates=("AllAlpha=false", "EventedPLEG=true"),
        runtime_config=("api/beta=true", "storage.k8s.io/v1beta1,apps/v1=false"),
    )
    release = release_of(chosen)
    assert release.gates == {"AllAlpha": False, "EventedPLEG": True}
    assert release.runtime_config == {
        "api/beta": "true", "storage.k8s.io/v1beta1": "", "apps/v1": "false",
    }  # fmt: skip


def test_wrong_gates_are_told_and_nothing_is_in_effect():
    said = refused(kubernetes_version="1.36", feature_gates=("Foo=true",))
    assert said == "--feature-gates: unrecognized feature gate: Foo"
    assert refused(feature_gates=("Foo",)) == "--feature-gates: missing bool value for Foo"
    assert features.release().minor == DEFAULT_MINOR


def test_what_a_stage_cannot_change_is_named():
    warnings = []
    use_release(ReleaseChoices(feature_gates=("AllAlpha=true,AllBeta=true",)), warn=warnings.append)
    assert "CBORServingAndStorage" in warnings[0]


def test_the_version_of_a_directory_is_in_its_record(tmp_path):
    data = open_data_dir(str(tmp_path / "data"))
    assert kept_minor(data) == ""
    data.remember(port=1)  # of before it was noted
    assert kept_minor(data) == "1.35"
    data.remember(**{KEPT: "1.36"})
    assert kept_minor(data) == "1.36"
    data.remember(**{KEPT: "1.99"})
    with pytest.raises(CannotStart, match=r"a cluster of Kubernetes 1\.99"):
        kept_minor(data)
