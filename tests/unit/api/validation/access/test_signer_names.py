import pytest

from sampan.api.validation.access import signer_names


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("example.com/pods", 0),
        ("example.com/namespace.name", 0),
        ("", 1),
        ("example.com", 1),
        ("a.com/b/c", 1),
        ("com/b", 1),
        ("example.com/", 1),
        ("exa_mple.com/a", 1),
        (f"{'a' * 64}.com/x", 1),
        (f"{'.'.join(['a' * 60] * 5)}/x", 1),
        (f"a.com/{'.'.join(['b' * 200] * 3)}", 1),
    ],
)
def test_a_signers_name_is_a_domain_and_a_path(name, wrong):
    errors = []
    signer_names.validate_signer_name(name, "s", errors)
    assert len(errors) == wrong, errors


def test_kubernetes_own_signers_sign_for_a_day():
    assert signer_names.longest_seconds("kubernetes.io/x") == 86400
    assert signer_names.longest_seconds("a.kubernetes.io/x") == 86400
    assert signer_names.longest_seconds("akubernetes.io/x") == 91 * 86400


def test_a_bundle_is_named_after_its_signer():
    rule = signer_names.bundle_name_rule("a.com/b")
    assert rule("a.com:b:roots") == ()
    assert rule("roots")
    assert signer_names.signer_of_bundle_name("a.com:b:roots") == "a.com/b"
    assert signer_names.signer_of_bundle_name("roots") == ""
    assert signer_names.bundle_name_rule("")("roots") == ()


def test_annotations_for_a_signer_have_a_domain():
    for annotations, count in (({"a.com/b": "x"}, 0), ({"b": ""}, 1), ({"": ""}, 1),
                               ({"a b": ""}, 1), ({"a.com/b": "x" * (256 << 10)}, 1)):  # fmt: skip
        errors = []
        signer_names.validate_user_annotations(annotations, "a", errors)
        assert len(errors) == count, annotations
