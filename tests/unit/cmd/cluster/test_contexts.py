"""cmd/cluster/contexts.py: several clusters in one kubeconfig keep apart."""

import pytest
import yaml

from sampan.client.kubeconfig import Connection, KubeconfigError
from sampan.client.kubeconfig_file import write_kubeconfig
from sampan.cmd.cluster import contexts
from sampan.cmd.cluster.data_dir import open_data_dir


def cluster(path, authority):
    """A data directory with an authority, and its administrator's access."""
    data = open_data_dir(str(path))
    data.pki.mkdir()
    (data.pki / "ca.crt").write_bytes(authority)
    return data, Connection(f"https://{path.name}", ca=authority, certificate=b"c", key=b"k")


def names(path):
    document = yaml.safe_load(path.read_text())
    return [entry["name"] for entry in document["contexts"]], document["current-context"]


def test_directories_of_the_same_name_get_contexts_of_their_own(tmp_path):
    shared = tmp_path / "config"
    first, first_admin = cluster(tmp_path / "a" / "dev", b"one")
    second, second_admin = cluster(tmp_path / "b" / "dev", b"two")
    assert contexts.put(first, shared, first_admin) == "sampan-dev"
    other = contexts.put(second, shared, second_admin)
    assert other.startswith("sampan-dev-")
    # Again, as each start does: the same names.
    assert contexts.put(first, shared, first_admin) == "sampan-dev"
    assert contexts.put(second, shared, second_admin) == other
    assert names(shared) == (["sampan-dev", other], other)


def test_what_was_current_before_is_so_again(tmp_path):
    shared = tmp_path / "config"
    write_kubeconfig(
        shared, Connection("https://work", ca=b"w", certificate=b"c", key=b"k"), "work"
    )
    data, admin = cluster(tmp_path / "dev", b"one")
    contexts.put(data, shared, admin)
    contexts.put(data, shared, admin)
    assert names(shared) == (["work", "sampan-dev"], "sampan-dev")
    assert contexts.take_out(data) == [(str(shared), "sampan-dev")]
    assert names(shared) == (["work"], "work")
    assert contexts.take_out(data) == []


def test_a_renewed_certificate_does_not_switch_the_context(tmp_path):
    shared = tmp_path / "config"
    data, admin = cluster(tmp_path / "dev", b"one")
    contexts.put(data, shared, admin)
    write_kubeconfig(
        shared, Connection("https://work", ca=b"w", certificate=b"c", key=b"k"), "work"
    )
    contexts.put(data, shared, admin, use=False)
    assert names(shared)[1] == "work"


def test_a_context_of_another_cluster_is_neither_overwritten_nor_removed(tmp_path):
    shared = tmp_path / "config"
    data, admin = cluster(tmp_path / "dev", b"one")
    contexts.put(data, shared, admin)
    other = Connection("https://other", ca=b"other", certificate=b"c", key=b"k")
    write_kubeconfig(shared, other, "sampan-dev")
    assert contexts.take_out(data) == []
    assert names(shared)[0] == ["sampan-dev"]
    with pytest.raises(KubeconfigError, match="another cluster"):
        contexts.put(data, shared, admin, name="sampan-dev")


def test_several_files_are_all_cleared(tmp_path):
    data, admin = cluster(tmp_path / "dev", b"one")
    for file in ("one", "two"):
        contexts.put(data, tmp_path / file, admin, name="mine")
    assert contexts.take_out(data, tmp_path / "one") == [(str(tmp_path / "one"), "mine")]
    assert contexts.take_out(data) == [(str(tmp_path / "two"), "mine")]


def test_what_an_older_sampan_remembered_is_taken_out_too(tmp_path):
    shared = tmp_path / "config"
    data, admin = cluster(tmp_path / "dev", b"one")
    write_kubeconfig(shared, admin, data.context_name)
    data.remember(kubeconfig=str(shared))
    assert contexts.take_out(data) == [(str(shared), "sampan-dev")]
