"""cmd/completion.py: the cluster's own verbs complete flags, values, clusters and snapshots."""

import os

import pytest

from sampan.cmd.cluster.cluster_names import state_directory
from sampan.cmd.completion import complete
from sampan.cmd.snapshot.snapshot_file import SUFFIX


def names(words):
    return [line.split("\t")[0] for line in complete(words, "").candidates]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_flags_are_told_with_a_word_about_them_and_only_once():
    assert "--nodes" in names(["up", "--nod"])
    assert "--nodes" not in names(["up", "--nodes", "3", "--nod"])
    assert all("\t" in line for line in complete(["up", "--nodes"], "").candidates)


def test_a_flag_of_few_values_completes_them():
    found = names(["up", "--runtime", ""])
    assert "none" in found
    assert names(["up", "--runtime=no"]) == ["none"]


def test_a_verb_of_verbs_completes_them():
    assert {"save", "restore", "list"} <= set(names(["snapshot", ""]))
    assert names(["snapshot", "res"]) == ["restore"]


def test_clusters_and_snapshots_of_this_machine(state):
    root = state_directory(os.environ) / "mine"
    (root / "snapshots").mkdir(parents=True)
    (root / "format").write_text("")
    (root / "snapshots" / f"before{SUFFIX}").write_text("")
    assert names(["down", "--name", ""]) == ["mine"]
    assert names(["snapshot", "restore", ""]) == ["before"]


def test_a_file_is_completed_by_the_shell():
    assert complete(["up", "--nodes-file", ""], "").directive == 0


def test_without_a_server_a_question_about_an_object_has_no_candidates():
    assert complete(["why", "pods", ""], "").candidates == []
