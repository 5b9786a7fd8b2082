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


def test_an_archive_without_names_says_what_to_do(tmp_path):
    import asyncio

    index = {"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "latest"}}]}
    path = written(tmp_path / "x.tar", {"index.json": json.dumps(index).encode()})
    with pytest.raises(ArchiveError, match="does not say what its image is called"):
        asyncio.run(import_archive("/nowhere", path))


def _blob(tar, digest):
    return tar.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
