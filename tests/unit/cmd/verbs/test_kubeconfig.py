"""cmd/verbs/kubeconfig.py: contexts of several clusters in one file keep apart."""

import yaml

from sampan.client.kubeconfig import Connection
from sampan.client.kubeconfig_file import remove_context, write_kubeconfig
from sampan.cmd.cluster.data_dir import DataDir

ONE = Connection("https://1", ca=b"a", certificate=b"c", key=b"k")
TWO = Connection("https://2", ca=b"a", certificate=b"c", key=b"k")


def test_two_clusters_keep_apart_and_one_is_taken_out_again(tmp_path):
    path = tmp_path / "config"
    write_kubeconfig(path, ONE, "sampan-one")
    write_kubeconfig(path, TWO, "sampan-two")
    document = yaml.safe_load(path.read_text())
    assert [entry["name"] for entry in document["clusters"]] == ["sampan-one", "sampan-two"]
    assert remove_context(path, "sampan-two")
    document = yaml.safe_load(path.read_text())
    for section in ("clusters", "contexts"):
        assert [entry["name"] for entry in document[section]] == ["sampan-one"]
    assert [entry["name"] for entry in document["users"]] == ["sampan-one-admin"]
    assert document["current-context"] == ""
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_not_there_is_not_removed(tmp_path):
    assert not remove_context(tmp_path / "none", "x")
    write_kubeconfig(tmp_path / "config", ONE, "a")
    assert not remove_context(tmp_path / "config", "b")


def test_a_context_is_named_after_the_data_directory(tmp_path):
    assert DataDir(tmp_path / "sampan-data").context_name == "sampan"
    assert DataDir(tmp_path / "dev").context_name == "sampan-dev"
