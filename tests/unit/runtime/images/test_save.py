"""An image in a file: what is saved can be imported, here and by containerd."""

import json
import tarfile

import pytest

from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from sampan.kubelet.images.reference import parse
from sampan.runtime.images.archives import import_archive
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.image_store import ImageStore
from sampan.runtime.images.save import save_archive

NAME = "localhost/a:1"


def imported(store, file):
    return import_archive(store, file, lambda name: parse(name).full_name(), "amd64")


@pytest.fixture
def store(tmp_path):
    file = tmp_path / "given.tar"
    file.write_bytes(build_archive(NAME, {"tool": ArchiveFile(b"program")}, ImageSettings()))
    found = ImageStore(tmp_path / "images")
    imported(found, file)
    return found


def test_what_is_saved_is_imported_again_and_is_the_same(store, tmp_path):
    saved = [tmp_path / "one.tar", tmp_path / "two.tar"]
    for file in saved:
        assert save_archive(store, store.find(NAME), [NAME], file) == file.stat().st_size
    assert saved[0].read_bytes() == saved[1].read_bytes()
    other = ImageStore(tmp_path / "other")
    assert imported(other, saved[0]) == [NAME]
    assert other.find(NAME) == store.find(NAME)


def test_docker_finds_its_own_list(store, tmp_path):
    save_archive(store, store.find(NAME), [NAME], tmp_path / "x.tar")
    with tarfile.open(tmp_path / "x.tar") as archive:
        (entry,) = json.load(archive.extractfile("manifest.json"))
        names = archive.getnames()
    assert entry["RepoTags"] == [NAME]
    assert {entry["Config"], *entry["Layers"]} <= set(names)


@pytest.mark.parametrize("damage", ["lost", "cut", "changed"])
def test_a_damaged_image_is_not_saved(store, tmp_path, damage):
    found = store.find(NAME)
    blob = store.content.path(found.manifest.layers[0].digest)
    data = blob.read_bytes()
    blob.write_bytes({"lost": b"", "cut": data[:-1], "changed": data[:-1] + b"!"}[damage])
    file = tmp_path / "x.tar"
    file.write_bytes(b"before")
    with pytest.raises(ImageError, match="pull"):
        save_archive(store, found, [NAME], file)
    assert file.read_bytes() == b"before"
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".")]
