from sampan.api import features
from sampan.api.features import Release
from sampan.cmd.verbs.versions.version_changes import changes_between

CLAIMS = "resourceclaims.resource.k8s.io"


def test_what_goes_comes_and_is_stored_otherwise():
    """[V3]"""
    changes = changes_between("1.34", "1.37")
    assert "admissionregistration.k8s.io/v1/mutatingadmissionpolicies" in changes.new
    assert "networking.k8s.io/v1beta1/servicecidrs" in changes.gone
    assert changes.stored[CLAIMS] == "resource.k8s.io/v1"
    assert "HPAScaleToZero" in changes.on
    assert changes.off == ()
    assert features.release() == Release(), "looking changes nothing"


def test_nothing_changes_within_a_version():
    changes = changes_between("1.36", "1.36")
    assert not any((changes.gone, changes.new, changes.stored, changes.on, changes.off))


def test_the_other_way_is_the_opposite():
    forth, back = changes_between("1.35", "1.36"), changes_between("1.36", "1.35")
    assert (forth.on, forth.off) == (back.off, back.on)
    assert set(forth.new) == set(back.gone)
