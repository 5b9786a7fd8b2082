import io
import json
import tarfile

import pytest

from sampan.kubelet.images.archive import (
    ArchiveError,
    ArchiveFile,
    ImageSettings,
    build_archive,
    import_archive,
    names_in,
)

SETTINGS = ImageSettings(entrypoint=("/bin/tool",), user="5", env=("A=1",))
FILES = {"bin/tool": ArchiveFile(b"program"), "bin/alias": ArchiveFile(b"", link_to="tool")}


def written(path, members):
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def test_an_archive_holds_what_its_digests_say():
    with tarfile.open(fileobj=io.BytesIO(build_archive("a/b:1", FILES, SETTINGS))) as tar:
        index = json.load(tar.extractfile("index.json"))
        manifest = json.load(_blob(tar, index["manifests"][0]["digest"]))
        config = json.load(_blob(tar, manifest["config"]["digest"]))
        layer = _blob(tar, manifest["layers"][0]["digest"]).read()
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert config["config"] == {"Env": ["A=1"], "Entrypoint": ["/bin/tool"], "User": "5"}
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.getnames() == ["bin", "bin/tool", "bin/alias"]
        assert tar.getmember("bin/alias").linkname == "tool"
        assert tar.getmember("bin/tool").mode == 0o755


def test_the_same_files_give_the_same_bytes():
    assert build_archive("a:1", FILES, SETTINGS) == build_archive("a:1", FILES, SETTINGS)


def test_names_are_found_in_both_kinds_of_archive(tmp_path):
    ours = tmp_path / "ours.tar"
    ours.write_bytes(build_archive("registry.example/a:1", FILES, SETTINGS))
    assert names_in(ours) == ["registry.example/a:1"]
    docker = [{"RepoTags": ["busybox:1", "busybox:latest"]}, {"RepoTags": None}]
    saved = written(tmp_path / "saved.tar", {"manifest.json": json.dumps(docker).encode()})
    assert names_in(saved) == ["busybox:1", "busybox:latest"]
    annotation = {"org.opencontainers.image.ref.name": "docker.io/library/a:1"}
    index = {"manifests": [{"annotations": annotation}]}
    copied = written(tmp_path / "copied.tar", {"./index.json": json.dumps(index).encode()})
    assert names_in(copied) == ["docker.io/library/a:1"]


@pytest.mark.parametrize(
    "members",
    [{}, {"readme": b"x"}, {"index.json": b"{"}, {"manifest.json": b"[1]"}, {"index.json": b"[]"}],
)
def test_what_is_no_image_archive_is_refused(tmp_path, members):
    path = written(tmp_path / "x.tar", members)
    with pytest.raises(ArchiveError, match="is not an image archive"):
        names_in(path)


def test_what_is_no_archive_at_all_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"hello")
    with pytest.raises(ArchiveError, match="is not an image archive"):
        names_in(path)
    with pytest.raises(ArchiveError, match="is not an image archive"):
        names_in(tmp_path / "missing")


def test_an_archive_without_names_says_what_to_do(tmp_path):
    import asyncio

    index = {"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "latest"}}]}
    path = written(tmp_path / "x.tar", {"index.json": json.dumps(index).encode()})
    with pytest.raises(ArchiveError, match="does not say what its image is called"):
        asyncio.run(import_archive("/nowhere", path))


def _blob(tar, digest):
    return tar.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
