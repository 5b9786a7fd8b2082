"""Images on the node that are not for everybody [N10]."""

import pytest

from sampan.kubelet.contracts.runtime import Credentials, Image
from sampan.kubelet.images.access import ImageAccess, credentials_hash

MINE, OTHER = Credentials("me", "secret"), Credentials("you", "word")
IMAGE = Image("sha256:1", ("a.example/app:1", "localhost/imported:1"), ("not a name",), 1)


def test_an_image_without_a_record_was_brought_by_the_owner_of_the_node(tmp_path):
    access = ImageAccess(str(tmp_path))
    assert access.is_everybodys(IMAGE, "a.example/app")
    assert access.may_use(IMAGE, "a.example/app", ())


def test_what_was_pulled_with_a_password_takes_that_password(tmp_path):
    access = ImageAccess(str(tmp_path / "records"))
    access.pulled("sha256:1", "a.example/app", MINE)
    for again in (access, ImageAccess(str(tmp_path / "records"))):
        assert not again.is_everybodys(IMAGE, "a.example/app")
        assert again.may_use(IMAGE, "a.example/app", (OTHER, MINE))
        assert not again.may_use(IMAGE, "a.example/app", (OTHER,))
    assert "secret" not in next((tmp_path / "records").iterdir()).read_text()
    access.pulled("sha256:1", "a.example/app", None)
    assert ImageAccess(str(tmp_path / "records")).is_everybodys(IMAGE, "a.example/app")


def test_what_nobody_had_to_log_in_for_is_everybodys_under_its_other_names_too(tmp_path):
    access = ImageAccess(str(tmp_path))
    access.pulled("sha256:1", "a.example/app", None)
    assert access.is_everybodys(IMAGE, "b.example/app")
    assert access.may_use(IMAGE, "localhost/imported", ())


def test_another_name_is_a_way_to_it_only_where_the_owner_gave_it_that_name(tmp_path):
    """Not by its bare id, nor by a name that it never had."""
    access = ImageAccess(str(tmp_path))
    access.pulled("sha256:1", "a.example/app", MINE)
    assert access.is_everybodys(IMAGE, "localhost/imported")
    assert not access.may_use(IMAGE, "docker.io/library/sha256", (MINE,))
    assert not access.may_use(IMAGE, "b.example/app", (MINE,))


def test_a_record_that_cannot_be_read_lets_nobody_in_unseen(tmp_path):
    access = ImageAccess(str(tmp_path))
    access.pulled("sha256:1", "a.example/app", MINE)
    next(tmp_path.iterdir()).write_text("{")
    for repository in ("a.example/app", "localhost/imported"):
        assert not ImageAccess(str(tmp_path)).may_use(IMAGE, repository, (MINE,))


def test_a_record_that_cannot_be_kept_lasts_as_long_as_the_process(tmp_path):
    (tmp_path / "file").write_text("")
    access = ImageAccess(str(tmp_path / "file"))
    access.pulled("sha256:1", "a.example/app", MINE)
    assert not access.may_use(IMAGE, "a.example/app", ())
    assert credentials_hash(MINE) != credentials_hash(OTHER)


@pytest.mark.parametrize(
    ("policy", "preloaded", "anothers"),
    [
        ("NeverVerify", True, True),
        ("NeverVerifyPreloadedImages", True, False),
        ("NeverVerifyAllowlistedImages", False, False),
        ("AlwaysVerify", False, False),
    ],
)
def test_a_policy_says_which_images_take_a_login(tmp_path, policy, preloaded, anothers):
    access = ImageAccess(str(tmp_path), policy, ("b.example/free/*", "c.example/app"))
    assert access.may_use(IMAGE, "a.example/app", (MINE,)) is preloaded
    access.pulled("sha256:1", "a.example/app", MINE)
    assert access.may_use(IMAGE, "a.example/app", (OTHER,)) is anothers
    assert access.may_use(IMAGE, "a.example/app", (MINE,))
    access.pulled("sha256:1", "a.example/app", None)
    assert access.may_use(IMAGE, "a.example/app", ())


@pytest.mark.parametrize(
    ("repository", "listed"),
    [
        ("b.example/free/app", True), ("b.example/free", False), ("b.example/freedom/app", False),
        ("c.example/app", True), ("c.example/app/more", False),
    ],
)  # fmt: skip
def test_images_on_the_list_are_everybodys(repository, listed):
    allowed = ("b.example/free/*", "c.example/app")
    access = ImageAccess("", "NeverVerifyAllowlistedImages", allowed)
    assert access.is_everybodys(IMAGE, repository) is listed
