"""cmd/verbs/machine/list.py: the clusters of this user."""

import json

import pytest

from sampan.cmd.cluster.data_dir import Lock, open_data_dir
from sampan.cmd.verbs.machine import list as clusters


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state" / "sampan"


def test_no_cluster_says_how_to_get_one(state, capsys):
    assert clusters.run(as_json=False) == 0
    assert "sampan up --name" in capsys.readouterr().out


def test_each_cluster_has_its_state(state, capsys):
    open_data_dir(str(state / "dev"))
    running = open_data_dir(str(state / "prod"))
    running.remember(version="1.2.3")
    lock = Lock.take(running)
    try:
        clusters.run(as_json=True)
    finally:
        lock.release()
    dev, prod = json.loads(capsys.readouterr().out)
    assert (dev["name"], dev["state"]) == ("dev", "stopped")
    assert (prod["name"], prod["state"], prod["version"]) == ("prod", "running", "1.2.3")
    assert prod["size"] > 0
    clusters.run(as_json=False)
    assert capsys.readouterr().out.split()[0] == "NAME"


def test_the_size_counts_files_and_survives_what_goes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/")
    assert 100_000 <= clusters.disk_bytes(tmp_path) < 200_000
    assert clusters.disk_bytes(tmp_path / "none") == 0
