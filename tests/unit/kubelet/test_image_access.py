"""Images on the node that are not for everybody [N10]."""

from sampan.kubelet.image_access import ImageAccess, hashed
from sampan.kubelet.runtime import Credentials

MINE, OTHER = Credentials("me", "secret"), Credentials("you", "word")


def test_an_image_without_a_record_was_brought_by_the_owner_of_the_node(tmp_path):
    access = ImageAccess(str(tmp_path))
    assert access.is_everybodys("sha256:1")
    assert access.may_use("sha256:1", "a.example/app", ())


def test_what_was_pulled_with_a_password_takes_that_password(tmp_path):
    access = ImageAccess(str(tmp_path / "records"))
    access.pulled("sha256:1", "a.example/app", MINE)
    for again in (access, ImageAccess(str(tmp_path / "records"))):
        assert not again.is_everybodys("sha256:1")
        assert again.may_use("sha256:1", "a.example/app", (OTHER, MINE))
        assert not again.may_use("sha256:1", "a.example/app", (OTHER,))
        assert not again.may_use("sha256:1", "b.example/app", (MINE,))  # another name for it
    assert "secret" not in next((tmp_path / "records").iterdir()).read_text()
    access.pulled("sha256:1", "a.example/app", None)
    assert ImageAccess(str(tmp_path / "records")).is_everybodys("sha256:1")


def test_what_nobody_had_to_log_in_for_is_everybodys_under_its_other_names_too(tmp_path):
    access = ImageAccess(str(tmp_path))
    access.pulled("sha256:1", "a.example/app", None)
    assert access.is_everybodys("sha256:1")
    assert access.may_use("sha256:1", "localhost/imported", ())


def test_a_record_that_cannot_be_read_lets_nobody_in_unseen(tmp_path):
    access = ImageAccess(str(tmp_path))
    access.pulled("sha256:1", "a", MINE)
    next(tmp_path.iterdir()).write_text("{")
    assert not ImageAccess(str(tmp_path)).may_use("sha256:1", "a", (MINE,))


def test_a_record_that_cannot_be_kept_lasts_as_long_as_the_process(tmp_path):
    (tmp_path / "file").write_text("")
    access = ImageAccess(str(tmp_path / "file"))
    access.pulled("sha256:1", "a", MINE)
    assert not access.may_use("sha256:1", "a", ())
    assert hashed(MINE) != hashed(OTHER)
