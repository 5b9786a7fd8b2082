"""`sampan snapshot` without a cluster: what it says of files, stores and other clusters."""

import pytest

from sampan.cmd import entry
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.snapshot.snapshot_file import Snapshot, write
from sampan.cmd.verbs.snapshot import unlike_the_cluster

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
"""


@pytest.fixture
def data(tmp_path):
    found = open_data_dir(str(tmp_path / "data"))
    (found.root / "snapshots").mkdir()
    write(found.root / "snapshots" / "good.snapshot", Snapshot([POD], "7", taken="then"))
    return found


def said(capsys, data, *words):
    code = entry.main([*words, "--data-dir", str(data.root)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_a_damaged_file_does_not_hide_the_others(data, capsys):
    (data.root / "snapshots" / "bad.snapshot").write_text("rubbish")
    code, text = said(capsys, data, "snapshot", "list")
    assert code == 0
    assert [line.split()[:4] for line in text.splitlines()[1:]] == [
        ["bad", "damaged", "0", "KiB"],
        ["good", "then", "7", "1"],
    ]


def test_who_encrypts_at_rest_is_told_where_it_is_not(data):
    assert unlike_the_cluster(data) == []
    data.remember(encrypted=True)
    [note] = unlike_the_cluster(data)
    assert "Secrets are not encrypted" in note
    data.remember(encrypted=False)
    assert unlike_the_cluster(data) == []


def test_a_snapshot_is_restored_to_where_the_cluster_keeps_its_objects(data, capsys, tmp_path):
    data.remember(store=f"sqlite:///{tmp_path}/elsewhere.db")
    assert said(capsys, data, "snapshot", "restore", "good")[0] == 0
    assert (tmp_path / "elsewhere.db").exists()
    assert not data.store.exists()
    data.remember(store="memory:")
    code, text = said(capsys, data, "snapshot", "restore", "good")
    assert (code, text.count("\n")) == (1, 1)
    assert "in memory" in text


@pytest.mark.parametrize("verb", [("snapshot", "diff"), ("diff",)])
def test_a_difference_needs_a_cluster_that_runs(data, capsys, verb):
    code, text = said(capsys, data, *verb, "good")
    assert code == 1
    assert "does not run" in text


def test_a_cluster_that_does_not_answer_is_named(data, capsys, tmp_path):
    (tmp_path / "other").write_text(KUBECONFIG)
    words = ("snapshot", "import", "x", "--from-kubeconfig", str(tmp_path / "other"))
    code, text = said(capsys, data, *words)
    assert code == 1
    assert text.startswith("sampan: https://127.0.0.1:1 does not answer")
    assert not (data.root / "snapshots" / "x.snapshot").exists()


@pytest.mark.parametrize("name", ["Upper", "a_b", "..", "x-"])
def test_a_name_that_is_none_is_refused(data, capsys, name):
    code, text = said(capsys, data, "snapshot", "restore", name)
    assert code == 1
    assert "is no name of a snapshot" in text
