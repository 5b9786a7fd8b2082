import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.kubelet.images.reference import InvalidReference, Reference, parse, with_default_tag

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("someone/app", "docker.io/someone/app:latest"),
        ("index.docker.io/app", "docker.io/library/app:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/app:v1", "localhost:5000/app:v1"),
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
        ("[fd00::1]:5000/app", "[fd00::1]:5000/app:latest"),
        (f"app@{DIGEST}", f"docker.io/library/app@{DIGEST}"),
        (f"app:v1@{DIGEST}", f"docker.io/library/app:v1@{DIGEST}"),
        ("a/b/c/d_e__f--g.h", "docker.io/a/b/c/d_e__f--g.h:latest"),
    ],
)
def test_a_short_name_has_one_full_form(text, full):
    assert parse(text).full_name() == full
    assert parse(full).full_name() == full


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "UPPER", "a//b", "a/", "/a", "a:", "a@", "a b", "a:b c", "-a", "a-", "http://a/b",
        "a@sha256:abc", "a@md5:" + "a" * 32, "a" * 256, "f" * 64, "a:" + "t" * 129, "x/Upper:1",
        "a_/b", "é", "a\n",
    ],
)  # fmt: skip
def test_what_is_no_reference_is_refused(text):
    """[N10]"""
    with pytest.raises(InvalidReference):
        parse(text)


def test_capitals_are_named_as_the_reason():
    with pytest.raises(
        InvalidReference, match=r"repository name \(library/Nginx\) must be lowercase"
    ):
        parse("Nginx:1.27")


def test_the_default_tag_is_added_without_filling_in_the_registry():
    assert with_default_tag("busybox") == "busybox:latest"
    assert with_default_tag("busybox:1") == "busybox:1"
    assert with_default_tag(f"busybox@{DIGEST}") == f"busybox@{DIGEST}"
    assert with_default_tag("localhost:5000/a") == "localhost:5000/a:latest"


COMPONENT = st.from_regex(r"[a-z0-9]+([._-][a-z0-9]+)?", fullmatch=True)


@settings(max_examples=50)
@given(
    st.lists(COMPONENT, min_size=1, max_size=4),
    st.sampled_from(["", "v1", "1.2.3-rc_1"]),
    st.sampled_from(["", DIGEST]),
)
def test_a_full_name_parses_to_itself(components, tag, digest):
    reference = Reference("registry.example:5000", "/".join(components), tag, digest)
    text = reference.full_name()
    assert parse(text).full_name() == text
    assert parse(text).repository == reference.repository
