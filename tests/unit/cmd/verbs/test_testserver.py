"""envtest's flags, as our API server knows them; its programs."""

from sampan.cmd.settings import Beside
from sampan.cmd.verbs.testserver import translated, write_assets


def test_nodes_get_the_authorizer_that_they_need():
    rbac = ["--authorization-mode=RBAC", "--cert-dir=/certs"]
    assert "--authorization-mode=RBAC" in translated(rbac, has_nodes=False)
    assert "--authorization-mode=Node,RBAC" in translated(rbac, has_nodes=True)
    both = ["--authorization-mode", "Node,RBAC"]
    assert "--authorization-mode=Node,RBAC" in translated(both, has_nodes=True)


def test_objects_stay_in_memory_and_certificates_are_those_of_envtest():
    found = translated(["--etcd-servers=http://e", "--cert-dir=/certs", "--v"], has_nodes=False)
    assert not any("etcd" in word or "cert-dir" in word for word in found)
    assert {"--store=memory:", "--tls-cert-file=/certs/apiserver.crt", "--v=true"} <= set(found)


def test_only_the_api_server_of_the_assets_hears_of_nodes(tmp_path):
    write_assets(tmp_path, Beside(("*",), 2))
    assert "kube-apiserver '--controllers=*' --nodes=2 \"$@\"" in _script(
        tmp_path, "kube-apiserver"
    )
    assert 'etcd "$@"' in _script(tmp_path, "etcd")


def _script(directory, program):
    return (directory / program).read_text()


def test_an_empty_word_is_an_empty_value_or_nothing():
    given = ["--disable-admission-plugins", "", "--runtime-config=a=true", "", "--profiling"]
    found = translated(given, has_nodes=False)
    assert found[:3] == [
        "--disable-admission-plugins=",
        "--runtime-config=a=true",
        "--profiling=true",
    ]
