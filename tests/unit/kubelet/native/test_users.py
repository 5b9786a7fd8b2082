import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.contracts.runtime import RuntimeFailure, SecurityContext
from sampan.kubelet.native import users
from sampan.kubelet.native.native_runtime import image_of
from sampan.kubelet.native.oci_spec import Identity
from sampan.runtime.images.content import Descriptor
from sampan.runtime.images.image_store import StoredImage
from sampan.runtime.images.manifests import ImageConfig, Manifest

PASSWD = "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/srv:/bin/sh\nbroken\n"
GROUP = "root:x:0:\nweb:x:34:\nextra:x:40:root,web\n"


@pytest.mark.parametrize(
    ("user", "security", "found"),
    [
        ("", {}, Identity(0, 0, (0, 40), "/root")),
        ("web", {}, Identity(33, 34, (34, 40), "/srv")),
        ("web:extra", {}, Identity(33, 40, (40,), "/srv")),
        ("33:7", {}, Identity(33, 7, (7, 40), "/srv")),
        ("1000", {}, Identity(1000, 0, (0,), "/")),
        ("web", {"run_as_user": 5}, Identity(5, 0, (0,), "/")),
        ("web", {"run_as_group": 9}, Identity(33, 9, (9, 40), "/srv")),
        ("web", {"only_given_groups": True, "supplemental_groups": (8,)},
         Identity(33, 34, (8, 34), "/srv")),
    ],
)  # fmt: skip
def test_users_and_groups_by_the_images_own_files(user, security, found):
    assert users.identity_of(SecurityContext(**security), user, PASSWD, GROUP) == found


@pytest.mark.parametrize("user", ["nobody", "web:nobody"])
def test_a_user_that_the_image_does_not_have_is_said(user):
    with pytest.raises(RuntimeFailure, match="no matching entries"):
        users.identity_of(SecurityContext(), user, PASSWD, GROUP)


def test_a_link_in_the_image_does_not_lead_to_a_file_of_the_node(tmp_path):
    (tmp_path / "etc").symlink_to("/etc")
    assert users.text_inside(tmp_path, "etc", "passwd") == ""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "passwd").symlink_to("/etc/passwd")
    assert users.text_inside(tmp_path, "real", "passwd") == ""
    (tmp_path / "real" / "group").write_text("x")
    assert users.text_inside(tmp_path, "real", "group") == "x"


# A user of an image: numbers as every script writes them, signs, names, and much too long ones.
ODD = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(categories=["Nd", "No"]), min_size=1, max_size=12),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["²", "٣", "+5", "-1", " 7", "1_000", "9" * 4400, "1e3", "00", ":", "0:²"]),
)
FIELD = ODD.map(lambda text: text.replace(":", "").replace("\n", ""))


def lines(fields: int) -> st.SearchStrategy[str]:
    return st.lists(st.lists(FIELD, max_size=fields + 1).map(":".join)).map("\n".join)


@given(st.integers(0, users.LARGEST_ID), lines(7), lines(4), st.integers(0, 5))
def test_a_number_that_was_verified_is_the_user_that_runs(uid, passwd, group, named_so):
    hostile = f"{uid}:x:{named_so}:0:root:/root:/bin/sh\n{passwd}"
    found = users.identity_of(SecurityContext(run_as_user=uid), "0", hostile, group)
    assert found.uid == uid


@given(ODD, lines(7), lines(4))
def test_of_any_image_there_is_a_user_or_a_refusal(user, passwd, group):
    found = None
    with contextlib.suppress(RuntimeFailure):
        found = users.identity_of(SecurityContext(), user, passwd, group)
    if found is not None:
        ids = (found.uid, found.gid, *found.groups)
        assert all(0 <= number <= users.LARGEST_ID for number in ids)
        number, name = users.image_user(user)
        assert number in (None, found.uid), "what was verified and what runs"
        assert (number is None) == (name != "")


@given(ODD)
def test_an_image_with_any_user_can_be_shown(user):
    digest = "sha256:" + "0" * 64
    manifest = Manifest(Descriptor("", digest, 1), ())
    stored = StoredImage(digest, (), (), 1, manifest, digest, ImageConfig("amd64", (), user=user))
    shown = image_of(stored)
    assert shown.uid is None or 0 <= shown.uid < 2**63
    json.dumps(shown.username)


def test_a_group_that_is_digits_is_that_number_whoever_bears_it_as_a_name():
    found = users.identity_of(SecurityContext(), "5:1000", "", "1000:x:0:\n")
    assert found.gid == 1000
