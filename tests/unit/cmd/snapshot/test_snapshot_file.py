import gzip
import os
import resource

import pytest

from sampan.cmd.snapshot.snapshot_file import BadSnapshot, Snapshot, read, storage_keys, write

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
BOAT = {"apiVersion": "x.example/v1", "kind": "Boat", "metadata": {"name": "b", "namespace": "n"}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.x.example"},
    "spec": {"group": "x.example", "scope": "Namespaced", "versions": [{"name": "v1"}],
             "names": {"plural": "boats", "kind": "Boat"}},
}  # fmt: skip


def test_what_was_written_is_read(tmp_path):
    written = Snapshot([POD, BOAT], "7", "https://x", "2026-01-01T00:00:00Z", ("a note",))
    write(tmp_path / "s", written)
    assert read(tmp_path / "s") == written
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_what_is_none_is_refused(tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "other").write_bytes(gzip.compress(b'{"kind": "Pod"}\n'))
    (tmp_path / "newer").write_bytes(gzip.compress(b'{"kind": "sampan snapshot", "format": 99}\n'))
    (tmp_path / "odd").write_bytes(gzip.compress(b'{"kind": "sampan snapshot", "format": "x"}\n'))
    (tmp_path / "empty").touch()
    write(tmp_path / "whole", Snapshot([POD] * 50))
    (tmp_path / "half").write_bytes((tmp_path / "whole").read_bytes()[:-20])
    for name, says in (
        ("nix", "there is no snapshot"),
        ("text", "no snapshot, or a damaged one"),
        ("other", "is no snapshot"),
        ("newer", r"a newer sampan \(format 99; this one knows 1\)"),
        ("odd", "damaged: its format is 'x'"),
        ("empty", "is no snapshot"),
        ("half", "damaged"),
    ):
        with pytest.raises(BadSnapshot, match=says):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        ([1], "no object"),
        ({"apiVersion": "v1", "kind": "Pod"}, "without metadata"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "without apiVersion, kind or name"),
        ({**POD, "kind": 3}, "without apiVersion, kind or name"),
        ({**POD, "metadata": {"name": "../../x", "namespace": "n"}}, "is no name"),
        ({**POD, "metadata": {"name": "x", "namespace": "a/b"}}, "is no name"),
        ({**POD, "metadata": {"name": "x", "namespace": {}}}, "is no name"),
    ],
)
def test_a_line_that_is_no_object_is_named(tmp_path, obj, says):
    write(tmp_path / "s", Snapshot([POD, obj]))
    with pytest.raises(BadSnapshot, match=f"damaged: line 3: .*{says}"):
        read(tmp_path / "s")


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path):
    write(tmp_path / "s", Snapshot([POD]))
    before = (tmp_path / "s").read_bytes()
    noise = {**POD, "data": os.urandom(100_000).hex()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(BadSnapshot, match="cannot be written"):
            write(tmp_path / "s", Snapshot([noise]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "s").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        ({**POD, "metadata": {"name": "p"}}, "this kind is in a namespace"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "n"}},
         "this kind is in no namespace"),
        ({**DEFINITION, "spec": {"group": "x"}}, "CustomResourceDefinition boats.x.example is dam"),
    ],
)  # fmt: skip
def test_an_object_without_a_place_in_a_store_is_refused(obj, says):
    with pytest.raises(BadSnapshot, match=says):
        storage_keys([obj])


def test_each_object_has_its_place_in_a_store():
    assert list(storage_keys([POD, DEFINITION, BOAT])) == [
        "/registry/pods/n/p",
        "/registry/customresourcedefinitions.apiextensions.k8s.io/boats.x.example",
        "/registry/boats.x.example/n/b",
    ]
    with pytest.raises(BadSnapshot, match="nobody defines the kind Boat"):
        storage_keys([BOAT])
