"""cmd/verbs/versions/upgrade_to.py: a cluster's data moves to another Kubernetes."""

import orjson
import pytest

from sampan.cmd.cluster.data_dir import Lock, open_data_dir
from sampan.cmd.cluster.releases import KEPT, UPGRADING, kept_minor
from sampan.cmd.errors import CannotStart
from sampan.cmd.verbs.versions import upgrade_to
from sampan.store.sqlite_copy import NewEntry, living, write_store

CLAIMS, CLASSES = "resourceclaims.resource.k8s.io", "volumeattributesclasses.storage.k8s.io"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu"}}


def claim(number, version="v1beta2"):
    """As it is stored."""
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": f"c{number}", "namespace": "default"},
        "spec": {"devices": {"requests": [REQUEST]}},
    }


def cluster(path, *objects, minor="1.34"):
    data = open_data_dir(str(path))
    write_store(
        data.store,
        [
            NewEntry(f"/registry/{CLAIMS}/default/{obj['metadata']['name']}", orjson.dumps(obj))
            for obj in objects
        ],
    )
    data.remember(version="0.0.1", store="sqlite:", **{KEPT: minor})
    return data


def stored(data):
    return {
        obj["metadata"]["name"]: obj["apiVersion"].partition("/")[2]
        for obj in map(orjson.loads, living(data.store, f"/registry/{CLAIMS}/").values())
    }


def upgraded(data, to, **rest):
    return upgrade_to.run(str(data.root), to, dry_run=rest.get("dry_run", False))


def test_what_is_stored_moves_and_the_version_is_noted(tmp_path, capsys):
    """[V3] more than a page of it"""
    data = cluster(tmp_path / "d", *(claim(number) for number in range(501)))
    assert upgraded(data, "v1.37") == 0
    assert set(stored(data).values()) == {"v1"}
    assert (kept_minor(data), len(stored(data))) == ("1.37", 501)
    said = capsys.readouterr().out
    assert "Kubernetes v1.34 → v1.37" in said
    assert f"stored as resource.k8s.io/v1: 501 {CLAIMS}" in said


def test_a_dry_run_says_the_same_and_changes_nothing_also_while_it_runs(tmp_path, capsys):
    """[V3]"""
    data = cluster(tmp_path / "d", claim(1))
    lock = Lock.take(data)
    assert upgraded(data, "1.37", dry_run=True) == 0
    lock.release()
    said = capsys.readouterr().out
    assert f"stored as resource.k8s.io/v1: 1 {CLAIMS}" in said
    assert "nothing was changed" in said
    assert (stored(data), kept_minor(data)) == ({"c1": "v1beta2"}, "1.34")


def test_a_cluster_that_runs_is_stopped_first(tmp_path, capsys):
    data = cluster(tmp_path / "d", claim(1))
    lock = Lock.take(data)
    assert upgraded(data, "1.37") == 1
    lock.release()
    assert "stop it with `sampan down" in capsys.readouterr().err
    assert stored(data) == {"c1": "v1beta2"}


def test_there_is_no_way_back(tmp_path, capsys):
    """[V3]"""
    data = cluster(tmp_path / "d", minor="1.36")
    assert upgraded(data, "1.35") == 1
    assert "v1.36: it cannot go back to v1.35" in capsys.readouterr().err
    assert upgraded(data, "1.40") == 1
    assert "there is no Kubernetes 1.40 here" in capsys.readouterr().err
    assert upgraded(data, "1.36") == 0
    assert "is Kubernetes v1.36" in capsys.readouterr().out


def test_what_was_interrupted_is_not_started_and_is_finished(tmp_path, capsys):
    """[V3] some are written already"""
    data = cluster(tmp_path / "d", claim(1), claim(2, "v1"))
    data.remember(**{UPGRADING: "1.36"})
    with pytest.raises(CannotStart, match=r"`sampan upgrade --to 1\.36` finishes it"):
        kept_minor(data)
    assert upgraded(data, "1.37") == 1
    assert "an upgrade to v1.36 has begun" in capsys.readouterr().err
    assert upgraded(data, "1.36") == 0
    assert (stored(data), kept_minor(data)) == ({"c1": "v1", "c2": "v1"}, "1.36")


def test_what_is_encrypted_is_left_alone_and_the_cluster_can_be_started(tmp_path, capsys):
    data = open_data_dir(str(tmp_path / "d"))
    data.remember(store="sqlite:", **{KEPT: "1.34"})
    write_store(data.store, [NewEntry(f"/registry/{CLASSES}/x", b"k8s:enc:aescbc:v1:k:x")])
    assert upgraded(data, "1.37") == 1
    assert f"{CLASSES} are encrypted" in capsys.readouterr().err
    assert kept_minor(data) == "1.34"


def test_without_a_cluster_there_is_nothing_to_upgrade(tmp_path, capsys):
    data = open_data_dir(str(tmp_path / "d"))
    assert upgraded(data, "1.37") == 1
    assert "there is no cluster yet" in capsys.readouterr().err
