"""cmd/chosen_cluster.py: which cluster is meant where nobody names one."""

import base64

import pytest

from sampan.cmd.chosen_cluster import chosen_path, found_kubeconfig
from sampan.cmd.cluster.cluster_names import HERE, state_directory

CONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://a:1", certificate-authority-data: {ca}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: ""}}}}]
current-context: c
"""


@pytest.fixture
def environment(tmp_path):
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}


def cluster(environment, name, authority=b""):
    root = state_directory(environment) / name
    (root / "pki").mkdir(parents=True)
    (root / "pki" / "ca.crt").write_bytes(authority or name.encode())
    (root / "kubeconfig").write_text("")
    (root / "format").write_text("")
    return root


def test_the_only_one_there_is(environment, tmp_path):
    only = cluster(environment, "lonely")
    assert chosen_path(environment, tmp_path, str(tmp_path)) == only


def test_of_two_that_stand_still_neither_is_guessed(environment, tmp_path):
    cluster(environment, "a")
    cluster(environment, "b")
    chosen = chosen_path(environment, tmp_path, str(tmp_path))
    assert chosen.parent == state_directory(environment)
    assert chosen.name not in ("a", "b")


def test_the_one_whose_authority_signs_for_the_current_context(environment, tmp_path):
    cluster(environment, "a")
    wanted = cluster(environment, "b")
    config = tmp_path / "config"
    config.write_text(CONFIG.format(ca=base64.b64encode(b"b").decode()))
    environment["KUBECONFIG"] = str(config)
    assert chosen_path(environment, tmp_path, str(tmp_path)) == wanted


def test_a_broken_kubeconfig_chooses_nothing(environment, tmp_path):
    only = cluster(environment, "a")
    config = tmp_path / "config"
    config.write_text("[")
    environment["KUBECONFIG"] = str(config)
    assert chosen_path(environment, tmp_path, str(tmp_path)) == only


def test_the_folder_and_the_variable_come_first(environment, tmp_path):
    cluster(environment, "a")
    (tmp_path / HERE).mkdir()
    assert chosen_path(environment, tmp_path, str(tmp_path)) == tmp_path / HERE
    environment["SAMPAN_DATA_DIR"] = str(tmp_path / "given")
    assert chosen_path(environment, tmp_path, str(tmp_path)) == tmp_path / "given"


def test_a_kubeconfig_is_found_where_there_is_one(environment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert found_kubeconfig(environment) == ""
    only = cluster(environment, "a")
    assert found_kubeconfig(environment) == str(only / "kubeconfig")
