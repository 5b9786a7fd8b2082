import gzip

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
    write(tmp_path / "whole", Snapshot([POD] * 50))
    (tmp_path / "half").write_bytes((tmp_path / "whole").read_bytes()[:-20])
    for name, says in (
        ("nix", "there is no snapshot"),
        ("text", "no snapshot, or a damaged one"),
        ("other", "is no snapshot"),
        ("newer", "a newer sampan"),
        ("half", "damaged"),
    ):
        with pytest.raises(BadSnapshot, match=says):
            read(tmp_path / name)


def test_each_object_has_its_place_in_a_store():
    assert list(storage_keys([POD, DEFINITION, BOAT])) == [
        "/registry/pods/n/p",
        "/registry/customresourcedefinitions.apiextensions.k8s.io/boats.x.example",
        "/registry/boats.x.example/n/b",
    ]
    with pytest.raises(BadSnapshot, match="nobody defines the kind Boat"):
        storage_keys([BOAT])
