"""Images in files: those that are as they should be, and those that lie, lack or say nonsense."""

import gzip
import io
import json
import os
import tarfile

import pytest

from sampan.kubelet.images.reference import parse
from sampan.runtime.images import manifests
from sampan.runtime.images.archives import import_archive
from sampan.runtime.images.content import ImageError, digest_of
from sampan.runtime.images.image_store import ImageStore

CONFIG_KIND = "application/vnd.oci.image.config.v1+json"
LAYER_KIND = "application/vnd.oci.image.layer.v1.tar"
NAMED = {"annotations": {"io.containerd.image.name": "localhost/a:1"}}


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


LAYER = tar({"tool": b"program"})


def said(kind, data, **more):
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data)} | more


def blob(data):
    return f"blobs/sha256/{digest_of(data).removeprefix('sha256:')}"


def layout(*, layer=None, manifest=None, config=None, entry=None, without=(), instead=None):
    """An OCI layout of one image; each document may say something else."""
    configured = {"architecture": "amd64", "rootfs": {"diff_ids": [digest_of(LAYER)]}}
    config_data = json.dumps(configured | (config or {})).encode()
    described = {
        "schemaVersion": 2,
        "mediaType": manifests.OCI_MANIFEST,
        "config": said(CONFIG_KIND, config_data),
        "layers": [said(LAYER_KIND, LAYER) | (layer or {})],
    }
    data = json.dumps(described | (manifest or {})).encode()
    index = json.dumps({"manifests": [said(manifests.OCI_MANIFEST, data) | NAMED | (entry or {})]})
    files = {
        "index.json": index.encode(),
        blob(data): data,
        blob(config_data): config_data,
        blob(LAYER): LAYER,
    }
    parts = {"manifest": blob(data), "config": blob(config_data), "layer": blob(LAYER)}
    for name in without:
        del files[parts[name]]
    for name, other in (instead or {}).items():
        files[parts[name]] = other
    return tar(files)


def negative_size():
    """Which Python's own reader would read for ever."""
    header = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = b"\xff" * 11 + b"\0"
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


def docker(entries, files=()):
    return tar({"manifest.json": json.dumps(entries).encode(), **dict(files)})


@pytest.fixture
def run(tmp_path):
    """(store, names) of an archive"""

    def imported(data):
        file = tmp_path / "image.tar"
        file.write_bytes(data)
        store = ImageStore(tmp_path / "images")
        try:
            return store, import_archive(store, file, lambda n: parse(n).full_name(), "amd64")
        except ImageError:
            assert store.content.digests() == set(), "something of it stayed"
            raise
        finally:
            assert list((tmp_path / "images" / "incoming").iterdir()) == []
            assert list((tmp_path / "images" / "claims").iterdir()) == []
            assert sorted(os.listdir(tmp_path)) == ["image.tar", "images"]

    return imported


def test_a_layout_is_imported_packed_or_not(run):
    store, names = run(gzip.compress(layout()))
    assert names == ["localhost/a:1"]
    assert store.find("localhost/a:1").manifest.layers[0].digest == digest_of(LAYER)


def test_an_archive_of_docker_is_imported(run):
    config = json.dumps({"rootfs": {"diff_ids": [digest_of(LAYER)]}}).encode()
    entry = {"Config": "c.json", "Layers": ["l/layer.tar"], "RepoTags": ["a:1"]}
    store, names = run(docker([entry], {"c.json": config, "l/layer.tar": LAYER}))
    assert names == ["docker.io/library/a:1"]
    assert store.find(names[0]).config.diff_ids == (digest_of(LAYER),)


BAD = {
    "layer of another digest": (layout(instead={"layer": LAYER[:-1] + b"!"}), "verification"),
    "configuration of another digest": (layout(instead={"config": b"{}"}), "its manifest says"),
    "manifest of another digest": (layout(instead={"manifest": b"{}"}), "verification"),
    "layer longer than it says": (layout(instead={"layer": LAYER + b"!"}), "larger than"),
    "layer shorter than it says": (layout(instead={"layer": LAYER[:-512]}), "its manifest says"),
    "layer without its size": (layout(layer={"size": "10"}), "no proper size"),
    "negative size": (layout(layer={"size": -1}), "no proper size"),
    "unknown kind of layer": (layout(layer={"mediaType": "text/html"}), "unknown kind"),
    "unknown digest": (layout(layer={"digest": "md5:00"}), "unsupported digest"),
    "digest upwards": (layout(layer={"digest": "sha256:../../x"}), "unsupported digest"),
    "layer that is elsewhere": (
        layout(without=["layer"], layer={"urls": ["https://elsewhere/layer"]}), "lacks blobs"),
    "no layer": (layout(without=["layer"]), "lacks blobs"),
    "no configuration": (layout(without=["config"]), "lacks blobs"),
    "no manifest": (layout(without=["manifest"]), "lacks blobs"),
    "more layers than its configuration names": (
        layout(config={"rootfs": {"diff_ids": []}}), "its configuration names 0"),
    "diff ids that are no digests": (
        layout(config={"rootfs": {"diff_ids": ["x"]}}), "unsupported digest"),
    "configuration that is a list": (layout(config={"config": [1]}), "not as it should be"),
    "old manifest": (layout(manifest={"schemaVersion": 1}), "version 1"),
    "layers that are no list": (layout(manifest={"layers": {"a": 1}}), "no list"),
    "index of nothing": (tar({"index.json": b'{"manifests": 1}'}), "no list"),
    "index that is no JSON": (tar({"index.json": b"{"}), "no JSON"),
    "index of depths": (tar({"index.json": b"[" * 100_000}), "no JSON"),
    "neither": (tar({"hello": b"x"}), "neither index.json nor"),
    "docker's list that is none": (docker({"Config": "x"}), "no list"),
    "docker's entries that are none": (docker(["x"]), "no list"),
    "docker's layers that are none": (docker([{"Config": "x", "Layers": 1}]), "no list"),
    "docker's file that is not there": (docker([{"Config": "../../etc/passwd"}]), "lacks ../.."),
    "no archive": (b"hello" * 1000, "not an image archive"),
    "nothing": (b"", "not an image archive"),
    "cut archive": (layout()[:2000], "not an image archive"),
    "cut and packed": (gzip.compress(layout())[:200], "image archive"),
    "damaged and packed": (gzip.compress(layout())[:100] + b"\xff" * 300, "image archive"),
    "negative size in the archive": (negative_size(), "negative size|invalid offset"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_archives_are_refused_by_name(run, name):
    data, sentence = BAD[name]
    with pytest.raises(ImageError, match=sentence):
        run(data)


def test_an_archive_of_too_many_entries_is_refused(run, monkeypatch):
    monkeypatch.setattr("sampan.runtime.images.archive_reader._MOST_MEMBERS", 3)
    with pytest.raises(ImageError, match="more than 3 entries"):
        run(tar({str(number): b"" for number in range(9)}))
