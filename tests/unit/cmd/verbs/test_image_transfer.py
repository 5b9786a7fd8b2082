"""cmd/verbs/image_transfer.py: other engines' images, and what fails as one sentence."""

import pytest

from sampan.cmd.verbs import image_transfer
from sampan.kubelet.images.archive import ArchiveError


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with programs of our own."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def add(name, script):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return add


def test_the_engine_that_is_there_is_asked(programs, tmp_path):
    programs("podman", 'echo "$@" > "$3"')
    assert image_transfer.engine("podman") == "podman"
    path = image_transfer.save_from("podman", "web:1", tmp_path)
    assert path.read_text() == f"save -o {path} web:1\n"


def test_no_engine_says_how_else(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ArchiveError, match="sampan image import"):
        image_transfer.engine("")


def test_what_an_engine_says_is_one_sentence(programs, tmp_path):
    programs("docker", "echo one; echo 'No such image: x' >&2; exit 1")
    with pytest.raises(ArchiveError, match=r"^docker: No such image: x$"):
        image_transfer.save_from("docker", "x", tmp_path)


def test_a_name_that_is_none(tmp_path):
    with pytest.raises(ArchiveError, match="no image's name"):
        image_transfer.full_name("Bad Name")
    assert image_transfer.full_name("nginx") == "docker.io/library/nginx:latest"


def test_a_failed_save_leaves_nothing(programs, tmp_path):
    programs("ctr", "echo half > \"$7\"; echo 'not found' >&2; exit 1")
    with pytest.raises(ArchiveError, match="not found"):
        image_transfer.save("/none", "x", tmp_path / "out.tar")
    assert not (tmp_path / "out.tar").exists()
    assert list(tmp_path.glob(".out.tar*")) == []
