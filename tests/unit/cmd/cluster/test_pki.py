"""cmd/cluster/pki.py: made once, kept, renewed in time."""

import os
import ssl
import stat

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sampan.cmd.cluster import pki
from sampan.cmd.cluster.certificates import signing
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.errors import CannotStart
from sampan.core.clock import SystemClock


class LaterClock(SystemClock):
    def __init__(self, days: float) -> None:
        self._days = days

    def now(self) -> float:
        return super().now() + self._days * 86_400


def wanted(server=("localhost", "127.0.0.1")):
    return pki.leaves(server, "node-1", ["node-1", "127.0.0.1"])


def test_everything_is_made_once_and_then_kept(tmp_path):
    root = tmp_path / "pki"
    assert ensure(root, wanted(), SystemClock()) == 3 + len(wanted())
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    assert ensure(root, wanted(), SystemClock()) == 0
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


def test_keys_are_readable_by_their_owner_only(tmp_path):
    ensure(tmp_path / "pki", wanted(), SystemClock())
    for path in (tmp_path / "pki").iterdir():
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_new_address_renews_only_the_server_certificate(tmp_path):
    ensure(tmp_path / "pki", wanted(), SystemClock())
    assert ensure(tmp_path / "pki", wanted(("localhost", "10.0.0.7")), SystemClock()) == 1
    assert ensure(tmp_path / "pki", wanted(("localhost", "10.0.0.7")), SystemClock()) == 0


def test_leaves_are_renewed_before_they_expire_and_the_ca_is_not(tmp_path):
    root = tmp_path / "pki"
    ensure(root, wanted(), SystemClock())
    ca = (root / "ca.crt").read_bytes()
    assert ensure(root, wanted(), LaterClock(200)) == 0
    assert ensure(root, wanted(), LaterClock(pki.LEAF_DAYS - 30)) == len(wanted())
    assert (root / "ca.crt").read_bytes() == ca


def test_the_admin_is_in_system_masters_and_openssl_accepts_the_chain(tmp_path):
    root = tmp_path / "pki"
    ensure(root, wanted(), SystemClock())
    paths = pki.Pki(root)
    admin = x509.load_pem_x509_certificate(paths.certificate("admin").read_bytes())
    organization = admin.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [attribute.value for attribute in organization] == ["system:masters"]
    context = ssl.create_default_context(cafile=str(paths.ca))
    context.load_cert_chain(paths.certificate("apiserver"), paths.key("apiserver"))


def test_nobody_but_the_admin_is_in_system_masters():
    """The certificate for kubelets was, too: whoever it was shown to could be asked with it."""
    leaves = pki.leaves(["api"], "n1", ["n1"])
    assert [leaf.file for leaf in leaves if "system:masters" in leaf.organizations] == ["admin"]


def test_another_clusters_authority_signs_the_certificates_of_a_node_that_joins(tmp_path):
    clock = SystemClock()
    leaf = pki.Leaf("kubelet", "system:node:n", ("system:nodes",), ("n", "127.0.0.1"))
    for name in ("one", "two"):
        ensure(tmp_path / name, wanted(), clock)
    one, two = pki.Pki(tmp_path / "one"), pki.Pki(tmp_path / "two")
    assert signing.ensure_signed_by(one, tmp_path / "node", [leaf], clock) == 1
    assert signing.ensure_signed_by(one, tmp_path / "node", [leaf], clock) == 0
    assert signing.ensure_signed_by(two, tmp_path / "node", [leaf], clock) == 1, (
        "it joins another now"
    )
    assert not pki.Pki(tmp_path / "node").ca_key.exists()


def test_the_front_proxy_has_an_authority_of_its_own(tmp_path):
    """Whoever the cluster's own authority signs (a node, a user) must not speak for others."""
    ensure(tmp_path / "pki", wanted(), SystemClock())
    paths = pki.Pki(tmp_path / "pki")

    def load(file):
        return x509.load_pem_x509_certificate(paths.certificate(file).read_bytes())

    load("front-proxy-client").verify_directly_issued_by(load("front-proxy-ca"))
    load("admin").verify_directly_issued_by(load("ca"))
    assert load("front-proxy-ca").public_key() != load("ca").public_key()


def test_an_authority_whose_key_is_kept_elsewhere_is_never_replaced(tmp_path):
    root = tmp_path / "pki"
    ensure(root, wanted(), SystemClock())
    ca = (root / "ca.crt").read_bytes()
    (root / "ca.key").unlink()
    assert ensure(root, wanted(), SystemClock()) == 0
    with pytest.raises(CannotStart, match=r"ca\.key is missing.*apiserver\.crt"):
        ensure(root, wanted(("localhost", "10.0.0.7")), SystemClock())
    assert (root / "ca.crt").read_bytes() == ca


def test_a_damaged_key_of_the_authority_is_named(tmp_path):
    root = tmp_path / "pki"
    ensure(root, wanted(), SystemClock())
    (root / "ca.key").write_text("nonsense")
    with pytest.raises(CannotStart, match=r"ca\.key is damaged"):
        ensure(root, wanted(("localhost", "10.0.0.7")), SystemClock())


def test_the_names_that_a_certificate_has_can_be_kept(tmp_path):
    assert signing.kept_names(tmp_path, "apiserver") == ()
    ensure(tmp_path / "pki", wanted(("lb.example.com", "192.0.2.9")), SystemClock())
    assert signing.kept_names(tmp_path / "pki", "apiserver") == ("lb.example.com", "192.0.2.9")


def test_a_member_of_etcd_serves_and_calls_its_peers_under_an_authority_of_its_own(tmp_path):
    ensure(tmp_path / "pki", pki.etcd_leaves(["192.0.2.1"]), SystemClock())
    paths = pki.Pki(tmp_path / "pki")

    def load(file):
        return x509.load_pem_x509_certificate(paths.certificate(file).read_bytes())

    load("etcd").verify_directly_issued_by(load("etcd-ca"))
    uses = load("etcd").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(uses) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    client = load("apiserver-etcd-client").extensions
    assert list(client.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.CLIENT_AUTH
    ]
