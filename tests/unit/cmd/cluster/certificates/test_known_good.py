"""cmd/cluster/certificates/known_good.py: only what is exactly as it was found is known."""

import sys

import pytest

from sampan.cmd.cluster import pki
from sampan.cmd.cluster.certificates import known_good
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.core.clock import SystemClock

NOW, UNTIL = 1000.0, 2000.0
WANTED = [pki.Leaf("apiserver", "kube-apiserver", names=("localhost",))]


@pytest.fixture
def noted(tmp_path):
    (tmp_path / "apiserver.crt").write_text("a certificate")
    (tmp_path / "apiserver.key").write_text("a key")
    known_good.note(tmp_path, WANTED, UNTIL)
    return tmp_path


def test_what_was_noted_is_known_until_it_is_old(noted):
    assert known_good.is_noted(noted, WANTED, NOW)
    assert not known_good.is_noted(noted, WANTED, UNTIL)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "apiserver.crt").write_text("b certificate"),
        lambda root: (root / "apiserver.key").unlink(),
        lambda root: (root / "ca.crt").write_text(""),
        lambda root: (root / known_good.FILE).write_text("{}"),
        lambda root: (root / known_good.FILE).write_text("[1]"),
        lambda root: (root / known_good.FILE).unlink(),
    ],
)
def test_any_change_of_the_files_is_noticed(noted, change):
    change(noted)
    assert not known_good.is_noted(noted, WANTED, NOW)


def test_other_wishes_are_other_certificates(noted):
    more = [pki.Leaf("apiserver", "kube-apiserver", names=("localhost", "10.0.0.1"))]
    assert not known_good.is_noted(noted, more, NOW)


def test_a_start_that_finds_them_as_they_were_does_without_cryptography(tmp_path, monkeypatch):
    wanted = pki.leaves(["localhost"], "node-1", ["node-1"])
    assert ensure(tmp_path / "pki", wanted, SystemClock()) > 0
    monkeypatch.setitem(sys.modules, "sampan.cmd.cluster.certificates.signing", None)
    monkeypatch.delattr("sampan.cmd.cluster.certificates.signing")
    assert ensure(tmp_path / "pki", wanted, SystemClock()) == 0
    (tmp_path / "pki" / "apiserver.crt").unlink()
    with pytest.raises(ImportError):
        ensure(tmp_path / "pki", wanted, SystemClock())
