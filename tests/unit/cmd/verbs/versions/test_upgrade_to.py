"""cmd/verbs/versions/upgrade_to.py: a cluster's data moves to another Kubernetes."""

import base64
import shutil

import orjson
import pytest
import yaml

from sampan.apiserver.storage.encryption import transformers
from sampan.cmd.cluster.data_dir import Lock, open_data_dir
from sampan.cmd.cluster.releases import KEPT, UPGRADING, kept_minor
from sampan.cmd.errors import CannotStart
from sampan.cmd.verbs.versions import upgrade_to
from sampan.store.open import open_store
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


SECRET = base64.b64encode(b"0123456789abcdef").decode()
ENCRYPTION = f"""
kind: EncryptionConfiguration
resources:
- resources: [{CLAIMS}]
  providers: [aesgcm: {{keys: [{{name: k, secret: {SECRET}}}]}}]
"""


def test_what_is_encrypted_moves_with_its_keys_and_stays_encrypted(tmp_path, capsys):
    """[V3]"""
    keys, plain = tmp_path / "keys.yaml", orjson.dumps(claim(1))
    keys.write_text(ENCRYPTION)
    sealing = transformers(yaml.safe_load(ENCRYPTION))[f"/registry/{CLAIMS}/"]
    name = f"/registry/{CLAIMS}/default/c1"
    data = open_data_dir(str(tmp_path / "d"))
    write_store(data.store, [NewEntry(name, sealing.sealed(name, plain))])
    data.remember(store="sqlite:", **{KEPT: "1.34"})
    assert upgrade_to.run(str(data.root), "1.37", dry_run=False) == 1
    assert "--encryption-provider-config says how" in capsys.readouterr().err
    assert upgrade_to.run(str(data.root), "1.37", str(keys), dry_run=False) == 0
    assert kept_minor(data) == "1.37"
    [after] = living(data.store, f"/registry/{CLAIMS}/").values()
    assert after.startswith(b"k8s:enc:aesgcm:v1:k:")
    assert orjson.loads(sealing.opened(name, after)[0])["apiVersion"] == "resource.k8s.io/v1"
    keys.write_text("kind: Other")
    assert upgrade_to.run(str(data.root), "1.37", str(keys), dry_run=False) == 1
    assert "not an EncryptionConfiguration" in capsys.readouterr().err


class Photographed:
    """A store of which every write leaves a picture of the directory: what a kill would leave."""

    def __init__(self, store, picture):
        self._store, self._picture = store, picture

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def update(self, *words, **rest):
        self._picture()
        found = await self._store.update(*words, **rest)
        self._picture()
        return found


@pytest.mark.slow
def test_killed_at_any_write_the_same_command_finishes(tmp_path, monkeypatch, capsys):
    """[V3]"""
    data = cluster(tmp_path / "d", *(claim(number) for number in range(3)))
    pictures = []

    def picture():
        pictures.append(tmp_path / str(len(pictures)))
        shutil.copytree(data.root, pictures[-1])

    async def photographed(*words):
        return Photographed(await open_store(*words), picture)

    with monkeypatch.context() as patch:
        patch.setattr(upgrade_to, "open_store", photographed)
        assert upgraded(data, "1.37") == 0
    assert len(pictures) == 6
    for left in pictures:
        killed = open_data_dir(str(left))
        with pytest.raises(CannotStart, match="was interrupted"):
            kept_minor(killed)
        assert upgraded(killed, "1.37") == 0
        assert (stored(killed), kept_minor(killed)) == (stored(data), "1.37")


def test_without_a_cluster_there_is_nothing_to_upgrade(tmp_path, capsys):
    data = open_data_dir(str(tmp_path / "d"))
    assert upgraded(data, "1.37") == 1
    assert "there is no cluster yet" in capsys.readouterr().err
