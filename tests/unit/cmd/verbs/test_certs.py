"""`sampan certs`: made once, kept, and enough for every process of a control plane."""

import stat

import pytest

from sampan.client import kubeconfig
from sampan.cmd.cluster.certificates import signing
from sampan.cmd.errors import CannotStart
from sampan.cmd.main import main
from sampan.cmd.settings import CertsSettings
from sampan.cmd.verbs import certs
from sampan.core.clock import SystemClock

SERVER = "https://lb.example.com:6443"


def made(root, **chosen):
    return certs.make(CertsSettings(str(root), **{"server": SERVER, **chosen}), SystemClock())


def test_what_it_made_stays_and_names_are_only_added(tmp_path):
    made(tmp_path / "pki", names=("192.0.2.1",))
    names = signing.kept_names(tmp_path / "pki", "apiserver")
    assert {"lb.example.com", "192.0.2.1", "10.96.0.1", "localhost"} <= set(names)
    before = {path.name: path.read_bytes() for path in (tmp_path / "pki").glob("[!.]*")}
    assert made(tmp_path / "pki")[0].endswith("all kept")
    after = {path.name: path.read_bytes() for path in (tmp_path / "pki").glob("[!.]*")}
    assert after == before


def test_each_process_has_a_kubeconfig_that_only_its_owner_can_read(tmp_path):
    made(tmp_path / "pki")
    for file in ("admin.conf", "scheduler.conf", "controller-manager.conf"):
        path = tmp_path / "pki" / file
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        found = kubeconfig.load(str(path), {}, "").connection()
        assert found.server == SERVER
        assert found.pair is not None
    made(tmp_path / "pki", server="https://other:1")
    found = kubeconfig.load(str(tmp_path / "pki" / "admin.conf"), {}, "").connection()
    assert found.server == "https://other:1"


def test_a_machine_that_has_the_authority_makes_its_own_under_it(tmp_path):
    made(tmp_path / "one")
    (tmp_path / "two").mkdir()
    for file in certs.SHARED:
        (tmp_path / "two" / file).write_bytes((tmp_path / "one" / file).read_bytes())
    made(tmp_path / "two")
    for file in certs.SHARED:
        one, two = (tmp_path / name / file for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("server", ["http://a:1", "a:1", "https://"])
def test_a_server_is_a_url(tmp_path, server):
    with pytest.raises(CannotStart, match="https://HOST:PORT"):
        made(tmp_path / "pki", server=server)


def test_a_directory_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    words = ["certs", "--cert-dir", str(tmp_path / "file" / "pki"), "--server", SERVER]
    assert main(words) == 1
    assert str(tmp_path / "file" / "pki") in capsys.readouterr().err
