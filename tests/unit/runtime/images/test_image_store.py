"""Blobs and names of images on the disk, and the documents that tie them together."""

import asyncio
import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from sampan.kubelet.images.reference import parse
from sampan.runtime.images import manifests
from sampan.runtime.images.archives import import_archive
from sampan.runtime.images.content import ContentStore, Descriptor, ImageError, digest_of
from sampan.runtime.images.image_store import ImageStore

DATA = b"some bytes"
WHOLE = Descriptor("text/plain", digest_of(DATA), len(DATA))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["manifests", "layers", "config", "rootfs", "diff_ids", "digest", "size", "mediaType",
     "platform", "schemaVersion", "Env", "Volumes", "User"]
)  # fmt: skip


def full_name(name):
    return parse(name).full_name()


@pytest.fixture
def store(tmp_path):
    return ImageStore(tmp_path / "images")


def archive(tmp_path, name="localhost/a:1", data=b"program"):
    file = tmp_path / "image.tar"
    settings = ImageSettings(entrypoint=("/tool",), user="5:6", stop_signal="SIGUSR1")
    file.write_bytes(build_archive(name, {"tool": ArchiveFile(data)}, settings))
    return file


def test_what_is_written_is_there_and_checked(tmp_path):
    content = ContentStore(tmp_path)
    assert not content.has(WHOLE)
    content.write(WHOLE, [DATA[:3], DATA[3:]])
    assert content.has(WHOLE)
    assert content.read(WHOLE.digest, 100) == DATA


@pytest.mark.parametrize("lie", [b"some byteZ", b"some", b"some bytes and more"])
def test_other_bytes_than_the_digest_says_are_never_kept(tmp_path, lie):
    content = ContentStore(tmp_path)
    with pytest.raises(ImageError):
        content.write(WHOLE, [lie])
    assert content.digests() == set()
    assert list((tmp_path / "incoming").iterdir()) == []


def test_a_file_that_lost_its_end_is_noticed(tmp_path):
    content = ContentStore(tmp_path)
    content.write(WHOLE, [DATA])
    content.path(WHOLE.digest).write_bytes(DATA[:4])
    assert not content.has(WHOLE)
    with pytest.raises(ImageError, match="damaged"):
        content.read(WHOLE.digest, 100)


@pytest.mark.parametrize("digest", ["", "md5:00", "sha256:../../etc/passwd", "sha256:" + "A" * 64])
def test_only_proper_digests_name_files(tmp_path, digest):
    with pytest.raises(ImageError):
        ContentStore(tmp_path).path(digest)


def test_an_imported_image_is_found_by_name_id_and_after_a_restart(store, tmp_path):
    assert import_archive(store, archive(tmp_path), full_name, "amd64") == ["localhost/a:1"]
    found = store.find("localhost/a:1")
    assert found.config.entrypoint == ("/tool",)
    assert (found.config.user, found.config.stop_signal) == ("5:6", "SIGUSR1")
    assert store.find(found.id) == store.find(found.id.removeprefix("sha256:")) == found
    assert ImageStore(tmp_path / "images").find("localhost/a:1") == found


def test_what_has_no_name_any_more_goes_but_not_what_is_mounted_or_coming(tmp_path):
    mounted = set()
    store = ImageStore(tmp_path / "images", None, lambda home: mounted)
    import_archive(store, archive(tmp_path), full_name, "amd64")
    found = store.find("localhost/a:1")
    layer = tmp_path / "images" / "layers" / found.config.diff_ids[0].removeprefix("sha256:")
    layer.mkdir()
    store.remove(found)
    assert store.find("localhost/a:1") is None
    with store.claims.claiming() as claim:
        claim.add(found.id)
        store.collect()
        assert found.id in store.content.digests()
    mounted.add(found.config.diff_ids[0])
    layer.mkdir(exist_ok=True)
    store.collect()
    assert store.content.digests() == set()
    assert layer.exists()
    mounted.clear()
    store.collect()
    assert not layer.exists()


def test_clusters_share_what_they_have_and_none_takes_it_from_another(tmp_path):
    shared, mounted = tmp_path / "shared", {}
    stores = [
        ImageStore(tmp_path / name, shared, lambda home: mounted.get(home.name, ()))
        for name in ("a", "b")
    ]
    for store in stores:
        import_archive(store, archive(tmp_path), full_name, "amd64")
    found = stores[0].find("localhost/a:1")
    layer = shared / "layers" / found.config.diff_ids[0].removeprefix("sha256:")
    layer.mkdir()
    stores[0].remove(found)
    stores[0].collect()
    assert stores[0].images() == []
    assert stores[1].find("localhost/a:1") == found
    assert found.manifest.layers[0].digest in stores[1].content.digests()
    # Its name is gone, but a container of the other one stands on it.
    stores[1].remove(found)
    mounted["b"] = found.config.diff_ids
    stores[0].collect()
    assert layer.exists()
    # The other one is gone, as a whole.
    shutil.rmtree(tmp_path / "b")
    stores[0].collect()
    assert not layer.exists()
    assert stores[0].content.digests() == set()


def test_a_name_that_another_process_moves_is_seen_at_once(store, tmp_path):
    import_archive(store, archive(tmp_path), full_name, "amd64")
    other = ImageStore(tmp_path / "images")
    for data in (b"1", b"2", b"3", b"4"):
        import_archive(other, archive(tmp_path, data=data), full_name, "amd64")
        assert store.find("localhost/a:1") == other.find("localhost/a:1")


def test_another_image_may_take_the_name(store, tmp_path):
    import_archive(store, archive(tmp_path), full_name, "amd64")
    before = store.find("localhost/a:1")
    import_archive(store, archive(tmp_path, data=b"newer"), full_name, "amd64")
    assert store.find("localhost/a:1").id != before.id
    assert store.find(before.id) is None


def test_an_image_whose_parts_were_lost_is_not_there(store, tmp_path):
    import_archive(store, archive(tmp_path), full_name, "amd64")
    found = store.find("localhost/a:1")
    store.content.remove(found.id)
    assert ImageStore(tmp_path / "images").find("localhost/a:1") is None


@pytest.mark.parametrize("damage", ["lost", "cut", "zeroed", "changed"])
@pytest.mark.slow
def test_what_the_disk_damaged_is_not_used_and_comes_again(store, tmp_path, damage):
    """As a machine leaves it that lost its power."""
    file = archive(tmp_path)
    import_archive(store, file, full_name, "amd64")
    found = store.find("localhost/a:1")
    blob = store.content.path(found.manifest.layers[0].digest)
    data = blob.read_bytes()
    match damage:
        case "lost":
            blob.unlink()
        case "cut":
            blob.write_bytes(data[:-600])
        case "zeroed":
            blob.write_bytes(bytes(len(data)))
        case "changed":
            blob.write_bytes(data[:-1] + b"!")
    with pytest.raises(ImageError, match="pull or import the image again"):
        asyncio.run(store.lowers(found))
    assert list((tmp_path / "images" / "unpacking").iterdir()) == []
    assert store.find("localhost/a:1") is None
    import_archive(store, file, full_name, "amd64")
    assert store.find("localhost/a:1") == found
    assert blob.read_bytes() == data


def test_the_manifest_for_this_machine_is_chosen():
    def of(architecture, os="linux"):
        return {
            "mediaType": manifests.OCI_MANIFEST, "digest": digest_of(architecture.encode()),
            "size": 1, "platform": {"architecture": architecture, "os": os},
        }  # fmt: skip

    index = {"manifests": [of("amd64", "windows"), of("arm64"), of("amd64")]}
    assert manifests.manifest_for(index, "amd64").digest == digest_of(b"amd64")
    with pytest.raises(ImageError, match="linux/riscv64"):
        manifests.manifest_for(index, "riscv64")


def test_layers_of_unknown_kinds_and_too_many_are_refused():
    part = {"mediaType": "text/html", "digest": digest_of(b""), "size": 0}
    config = part | {"mediaType": "application/vnd.oci.image.config.v1+json"}
    with pytest.raises(ImageError, match="unknown kind"):
        manifests.manifest({"schemaVersion": 2, "config": config, "layers": [part]})
    layer = part | {"mediaType": "application/vnd.oci.image.layer.v1.tar"}
    with pytest.raises(ImageError, match="200 layers"):
        manifests.manifest({"schemaVersion": 2, "config": config, "layers": [layer] * 200})


@given(st.dictionaries(NAMES, JSON))
def test_whatever_a_document_says_is_a_value_or_an_image_error(found):
    for read in (
        manifests.manifest, manifests.config, manifests.media_type_of, manifests.descriptor,
        lambda index: manifests.manifest_for(index, "amd64"),
    ):  # fmt: skip
        try:
            read(found)
        except ImageError:
            continue


@given(st.binary(max_size=40))
def test_documents_are_json_objects(data):
    try:
        assert isinstance(manifests.document(data, "manifest"), dict)
    except ImageError:
        return
    assert json.loads(data) is not None
