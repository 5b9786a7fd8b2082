import json

from sampan.kubelet.contracts.runtime import Credentials
from sampan.kubelet.images.credential_file import CredentialFile, search_order


def config(user, host="registry.example"):
    return json.dumps({"auths": {host: {"username": user, "password": "p"}}})


def users(file):
    return [found.username for _, found in file.entries()]


def test_the_first_file_with_credentials_counts(tmp_path):
    first, second, legacy = tmp_path / "a.json", tmp_path / "b.json", tmp_path / ".dockercfg"
    file = CredentialFile([str(first), str(second), str(legacy)])
    assert file.entries() == ()
    legacy.write_text(json.dumps({"registry.example": {"username": "old", "password": "p"}}))
    assert users(file) == ["old"]
    second.write_text(config("second"))
    assert users(file) == ["second"]
    first.write_text("{ this is not JSON")
    assert users(file) == ["second"]
    first.write_text(config("first"))
    assert users(file) == ["first"]
    first.write_text(config("another"))
    assert users(file) == ["another"]


def test_entries_whose_secret_is_kept_elsewhere_are_none(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": {"a.example": {}}, "credsStore": "desktop"}))
    assert CredentialFile([str(file)]).entries() == ()
    file.write_text(json.dumps(["nonsense"]))
    assert CredentialFile([str(file)]).entries() == ()


def test_both_forms_are_looked_for_in_the_nodes_own_directory_first():
    order = search_order("/data/kubelet", "/data/home")
    assert order[:2] == ("/data/kubelet/config.json", "/data/home/.docker/config.json")
    assert order.index("/data/kubelet/.dockercfg") > order.index("/.docker/config.json")
    assert Credentials(username="x").is_something
    assert not Credentials().is_something
