"""Images as volumes, and the volumes that an image names for itself."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from sampan.kubelet.contracts.runtime import Mount, RuntimeFailure
from sampan.kubelet.native.image_mounts import (
    BundlePlace,
    ContainerImages,
    UnpackedImage,
    mounts_of,
)
from sampan.kubelet.native.root_filesystem import directory_inside, unmount_root

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def unpacked(*lowers, volumes=(), diff_ids=()):
    config = SimpleNamespace(volumes=volumes, diff_ids=diff_ids)
    return UnpackedImage(SimpleNamespace(config=config), lowers)


def tree(root, files):
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture
def place(tmp_path):
    found = tmp_path / "container"
    found.mkdir()
    yield found
    unmount_root(found)


def test_what_an_image_names_is_the_containers_own_with_what_the_image_has(tmp_path, place):
    root = tree(tmp_path / "root", {"data/file": "from the image", "else/file": "x"})
    (root / "data").chmod(0o1777)
    images = ContainerImages(unpacked(volumes=("/data", "/new", "/given/")), {})
    given = Mount("/given", "/host")
    first, *own = mounts_of(BundlePlace(place, root), [given], images)
    assert first == given
    assert [mount.container_path for mount in own] == ["/data", "/new"]
    data, new = (Path(mount.host_path) for mount in own)
    assert (data / "file").read_text() == "from the image"
    assert data.stat().st_mode & 0o7777 == 0o1777
    assert list(new.iterdir()) == []
    assert not any(mount.read_only for mount in own)


def test_a_volume_of_an_image_does_not_lead_out_of_it(tmp_path, place):
    tree(tmp_path / "secret", {"file": "x"})
    root = tree(tmp_path / "root", {"file": "x"})
    (root / "data").symlink_to("../secret")
    with pytest.raises(OSError, match="data"):
        mounts_of(BundlePlace(place, root), [], ContainerImages(unpacked(volumes=("/data",)), {}))


def test_links_inside_are_followed_and_no_further(tmp_path):
    root = tree(tmp_path / "image", {"a/b/file": "x"})
    (root / "link").symlink_to("a/b")
    (root / "out").symlink_to("/etc")
    assert directory_inside(root, "link") == str(root / "a" / "b")
    for wrong in ("out", "../image/a", "a/b/file", "no"):
        with pytest.raises(OSError, match=wrong):
            directory_inside(root, wrong)


@needs_root
def test_an_image_volume_shows_all_layers_and_takes_nothing(tmp_path, place):
    layers = [
        tree(tmp_path / "one", {"dir/a": "1", "b": "1"}),
        tree(tmp_path / "two", {"b": "2"}),
    ]
    images = ContainerImages(
        unpacked(diff_ids=("x", "y")), {"id": unpacked(*layers, diff_ids=("y", "z"))}
    )
    assert images.diff_ids() == ("x", "y", "z")
    asked = [Mount("/v", "", image="id"), Mount("/d", "", image="id", image_sub_path="dir")]
    whole, part = mounts_of(BundlePlace(place, tmp_path), asked, images)
    assert whole.read_only
    assert (Path(whole.host_path) / "b").read_text() == "2"
    assert (Path(part.host_path) / "a").read_text() == "1"
    with pytest.raises(OSError, match="Read-only"):
        (Path(whole.host_path) / "new").touch()


@needs_root
@pytest.mark.parametrize("path", ["no/such", "file", "../.."])
def test_a_sub_path_that_is_no_directory_of_the_image_is_refused(tmp_path, place, path):
    images = ContainerImages(unpacked(), {"id": unpacked(tree(tmp_path / "one", {"file": "1"}))})
    with pytest.raises(RuntimeFailure) as refused:
        mounts_of(
            BundlePlace(place, tmp_path), [Mount("/v", "", image="id", image_sub_path=path)], images
        )
    assert refused.value.reason == "ImageVolumeMountFailed"


@needs_root
def test_an_image_without_layers_is_an_empty_volume(tmp_path, place):
    images = ContainerImages(unpacked(), {"id": unpacked()})
    (mount,) = mounts_of(BundlePlace(place, tmp_path), [Mount("/v", "", image="id")], images)
    assert list(Path(mount.host_path).iterdir()) == []
