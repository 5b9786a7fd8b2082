from base64 import b64decode

from sampan.client import kubeconfig
from sampan.cmd.cluster.data_dir import write_private
from sampan.cmd.verbs.join import bootstrap_kubeconfig


def test_the_file_that_it_joins_with_is_a_kubeconfig(tmp_path):
    import yaml

    path = tmp_path / "k"
    document = bootstrap_kubeconfig("https://192.0.2.1:6443", "abcdef.0123456789abcdef", b"PEM")
    write_private(path, yaml.safe_dump(document).encode())
    found = kubeconfig.load(str(path), {}, str(tmp_path)).connection()
    assert (found.server, found.token) == ("https://192.0.2.1:6443", "abcdef.0123456789abcdef")
    assert found.ca == b"PEM"
    data = document["clusters"][0]["cluster"]["certificate-authority-data"]
    assert b64decode(data) == b"PEM"
