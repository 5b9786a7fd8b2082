"""A file that cannot be read, among those that a start depends on: it is left out, and no other."""

import contextlib
import json
import tempfile
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sampan.kubelet.container_spec.user_namespaces import UserNamespaces
from sampan.kubelet.contracts.runtime import Credentials, Image
from sampan.kubelet.images.access import ImageAccess
from sampan.kubelet.native.native_runtime import image_of
from sampan.kubelet.native.records import Records, SandboxRecord
from sampan.kubelet.pods.allocation_checkpoint import AllocationCheckpoint
from sampan.network import bridge
from sampan.network.overlay import overlay
from sampan.network.overlay.routes import PodRoute
from sampan.network.pods.attachments import Attachment, Attachments
from sampan.runtime.images.claims import Claims
from sampan.runtime.images.content import Descriptor, ImageError, digest_of
from sampan.runtime.images.image_store import ImageStore
from sampan.runtime.images.manifests import OCI_MANIFEST

MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=6,
)
ODD_VALUES = VALUES | st.sampled_from(
    ["²", "\ud800", "\0", 10**400, -(2**63) - 1, 2**64, 1e308, "9" * 4400, {"name": {}}, [[]]]
)
GARBAGE = st.one_of(
    st.binary(max_size=60),
    ODD_VALUES.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [b"", b"\0" * 4096, b"[" * 5000, b'{"a":' * 5000, b"1" * 5000, b"\xff", b"NaN"]
    ),
)


def names_of(store, home):
    return {name for image in store(home).images() for name in image.names}


def put_image(store, name, config, **descriptor):
    data = json.dumps(config).encode()
    told = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest_of(data),
            "size": len(data)}  # fmt: skip
    document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": told | descriptor}
    manifest = json.dumps(document).encode()
    store.content.write(Descriptor("", digest_of(data), len(data)), [data])
    whole = Descriptor(OCI_MANIFEST, digest_of(manifest), len(manifest))
    store.content.write(whole, [manifest])
    return store.put(name, whole)


# By name: write three, and read which are there.


def write_images(home):
    for name in "abc":
        put_image(ImageStore(home), name, {"architecture": "amd64", "config": {"User": name}})
    return list((home / "names").iterdir())


def read_images(home):
    store = ImageStore(home)
    shown = [image_of(stored) for stored in store.images()]
    orjson.dumps([[image.tags, image.username, image.uid, image.size_bytes] for image in shown])
    store.collect()
    return {name for image in shown for name in image.tags}


def write_records(home):
    for name in "abc":
        Records(home, SandboxRecord).put(SandboxRecord(name, name, "default", "uid", 0, 1.0))
    return [home / name / "record.json" for name in "abc"]


def read_records(home):
    records = Records(home, SandboxRecord)
    assert {*records.broken()} <= {"a", "b", "c"}
    return {record.id for record in records.all()}


def write_attachments(home):
    for number, name in enumerate("abc"):
        Attachments(home).put(Attachment(name, "eth0", f"v{name}", (f"10.244.0.{number + 2}/24",)))
    return list(home.iterdir())


def read_attachments(home):
    found = Attachments(home)
    found.taken()
    return {attachment.container for attachment in found.all()}


def write_ranges(home):
    for name in "abc":
        UserNamespaces(str(home)).range_of(name)
    return list(home.glob("**/userns"))


def read_ranges(home):
    """A new one is nobody else's."""
    known = UserNamespaces(str(home))
    known.range_of("another")
    return {name for name in "abc" if known._read(home / "pods" / name / "userns") is not None}


def write_pulls(home):
    for name in "abc":
        ImageAccess(str(home)).pulled(name, "repository", Credentials("user", "word"))
    return [file for file in home.glob("**/*") if file.is_file()]


def read_pulls(home):
    """Who cannot be asked is asked for a login again."""
    access = ImageAccess(str(home))
    offered = [Credentials("user", "word")]
    return {
        name
        for name in "abc"
        if access.may_use(Image(name, ("repository:1",), (), 1), "repository", offered)
    }


def write_homes(home):
    claims = Claims(home)
    for name in "abc":
        (home / "cluster" / name).mkdir(parents=True, exist_ok=True)
        claims.register(home / "cluster" / name)
    return [claims._file(home / "cluster" / name) for name in "abc"]


def read_homes(home):
    return {place.name for place in Claims(home).homes()}


PARTS = {
    "images": (write_images, read_images),
    "records of sandboxes": (write_records, read_records),
    "interfaces": (write_attachments, read_attachments),
    "ranges of users": (write_ranges, read_ranges),
    "who pulled what": (write_pulls, read_pulls),
    "homes of images": (write_homes, read_homes),
}


@pytest.mark.parametrize("part", PARTS)
def test_of_three_files_two_are_read(part):
    write, read = PARTS[part]

    @MANY
    @given(GARBAGE, st.integers(0, 2))
    def hold(garbage, which):
        with tempfile.TemporaryDirectory() as directory:
            home = Path(directory)
            files = write(home)
            assert len(files) == 3
            assert read(home) == {"a", "b", "c"}
            files[which].write_bytes(garbage)
            left = read(home)
            assert left <= {"a", "b", "c"}
            assert len(left) >= 2
            assert read(home) == left, "reading again finds the same"

    hold()


@MANY
@given(GARBAGE)
def test_a_damaged_line_of_the_checkpoint_takes_no_other_pod_s_resources(garbage):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "allocations")
        given_to = {"main": {"requests": {"cpu": "1"}}}
        AllocationCheckpoint(str(file)).put("a", given_to, {})
        with file.open("ab") as opened:
            opened.write(b"\n" + garbage)
        AllocationCheckpoint(str(file)).put("b", given_to, {})
        found = AllocationCheckpoint(str(file)).read()
        assert found.items() >= {"a": given_to, "b": given_to}.items()
        for given_here in found.values():
            assert all(isinstance(each, dict) for each in given_here.values())


@MANY
@given(GARBAGE)
def test_a_damaged_record_of_the_network_is_as_none(garbage):
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for file in ("network.json", "pod-routes.json"):
            (home / file).write_bytes(garbage)
        found = bridge.record(home)
        assert found is None or found.subnets
        overlay.recorded(home)
        route = PodRoute("10.244.1.0/24", "192.0.2.1", False)
        overlay.record(home, [route])
        assert overlay.recorded(home) == {route.cidr: route}


FIELDS = ("User", "Env", "Cmd", "Entrypoint", "WorkingDir", "StopSignal", "Volumes", "Labels")
NAMED = st.dictionaries(st.sampled_from(FIELDS), ODD_VALUES | st.text(max_size=20), max_size=4)


@MANY
@given(NAMED, ODD_VALUES, st.fixed_dictionaries({}, optional={"size": ODD_VALUES}))
@example({"User": "²"}, None, {})
@example({"User": "9" * 4400}, None, {})
@example({"User": "\ud800"}, None, {})
@example({}, None, {"size": 10**30})
def test_no_image_keeps_the_others_from_being_shown(config, rootfs, descriptor):
    """Whoever pulled it: its documents are what a registry said."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        put_image(ImageStore(home), "good", {"architecture": "amd64"})
        with contextlib.suppress(ImageError):
            document = {"config": config} | ({"rootfs": rootfs} if rootfs is not None else {})
            put_image(ImageStore(home), "bad", document, **descriptor)
        assert "good" in read_images(home)
        for stored in ImageStore(home).images():
            shown = image_of(stored)
            assert 0 <= shown.size_bytes < 2**63
            assert shown.uid is None or 0 <= shown.uid < 2**63
