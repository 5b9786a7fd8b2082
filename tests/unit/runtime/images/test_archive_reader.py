"""runtime/images/archive_reader.py: which images an archive holds."""

import io
import json
import tarfile

import pytest

from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from sampan.runtime.images.archive_reader import DOCKER_NAME, STANDARD_NAME, ImageName, names_in
from sampan.runtime.images.content import ImageError

SETTINGS = ImageSettings(entrypoint=("/bin/tool",))
FILES = {"bin/tool": ArchiveFile(b"program")}


def written(path, members):
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def test_names_are_found_in_both_kinds_of_archive(tmp_path):
    ours = tmp_path / "ours.tar"
    ours.write_bytes(build_archive("registry.example/a:1", FILES, SETTINGS))
    assert [name.written for name in names_in(ours)] == ["registry.example/a:1"]
    docker = [{"RepoTags": ["busybox:1", "busybox:latest"]}, {"RepoTags": None}]
    saved = written(tmp_path / "saved.tar", {"manifest.json": json.dumps(docker).encode()})
    assert names_in(saved) == [
        ImageName("busybox:1", DOCKER_NAME),
        ImageName("busybox:latest", DOCKER_NAME),
    ]
    annotation = {"org.opencontainers.image.ref.name": "docker.io/library/a:1"}
    index = {"manifests": [{"annotations": annotation}]}
    copied = written(tmp_path / "copied.tar", {"./index.json": json.dumps(index).encode()})
    assert names_in(copied) == [ImageName("docker.io/library/a:1", STANDARD_NAME)]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"readme": b"x"},
        {"index.json": b"{"},
        {"manifest.json": b"[1]"},
        {"index.json": b"[]"},
        {"index.json": b'{"manifests": [1]}'},
    ],
)
def test_what_is_no_image_archive_is_refused(tmp_path, members):
    path = written(tmp_path / "x.tar", members)
    with pytest.raises(ImageError, match="is not an image archive"):
        names_in(path)


def test_what_is_no_archive_at_all_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"hello")
    with pytest.raises(ImageError, match="is not an image archive"):
        names_in(path)
    with pytest.raises(ImageError, match="is not an image archive"):
        names_in(tmp_path / "missing")
