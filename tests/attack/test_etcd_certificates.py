"""A real etcd with the certificates of `sampan certs`: who gets in, and who is taken for it."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from sampan.core.clock import SystemClock
from sampan.store.contract import StoreError
from sampan.store.open import open_store
from tests.support.parts.certificates import Authority
from tests.support.parts.etcd_server import etcd_cluster, url_of
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
CLIENT = "apiserver-etcd-client"
# Of the cluster, but not of etcd.
OTHERS = (
    "admin", "apiserver", "apiserver-kubelet-client", "controller-manager", "scheduler",
    "front-proxy-client",
)  # fmt: skip


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    place = tmp_path_factory.mktemp("pki")
    subprocess.run(
        [*sampan_command("certs"), "--cert-dir", str(place), "--server", "https://127.0.0.1:6443"],
        check=True, capture_output=True, env=environment(),
    )  # fmt: skip
    return place


def flags(pki: Path, name: str, authority: str = "etcd-ca"):
    return (
        "--cert-file", str(pki / f"{name}.crt"), "--key-file", str(pki / f"{name}.key"),
        "--client-cert-auth", "--trusted-ca-file", str(pki / f"{authority}.crt"),
    )  # fmt: skip


def address(members, pki, name="", authority="etcd-ca"):
    shown = f"&cert={pki / name}.crt&key={pki / name}.key" if name else ""
    return url_of(members, f"?cacert={pki / authority}.crt{shown}")


async def is_let_in(url):
    try:
        store = await open_store(url, SystemClock())
    except StoreError:
        return False
    await store.close()
    return True


def test_nobody_but_the_api_server_gets_into_etcd(pki, tmp_path):
    stranger = Authority(tmp_path).issue("kube-apiserver-etcd-client")

    async def main(members):
        assert await is_let_in(address(members, pki, CLIENT))
        assert [one for one in OTHERS if await is_let_in(address(members, pki, one))] == []
        assert not await is_let_in(address(members, pki))
        assert not await is_let_in(url_of(members))
        theirs = f"&cert={stranger.cert_path}&key={stranger.key_path}"
        assert not await is_let_in(address(members, pki) + theirs)
        assert await is_let_in(address(members, pki, CLIENT)), "and it goes on"

    with etcd_cluster(1, *flags(pki, "etcd")) as members:
        asyncio.run(main(members))


@pytest.mark.parametrize("name", [*OTHERS[:3], CLIENT, "front-proxy-client"])
def test_nobody_else_is_taken_for_etcd(pki, name):
    """Who has another certificate of the cluster and listens where etcd should be: neither one of
    the cluster's authority, nor one of etcd's that is a client's."""

    async def main(members):
        assert not await is_let_in(address(members, pki, CLIENT))

    with etcd_cluster(1, *flags(pki, name)) as members:
        asyncio.run(main(members))


def test_a_certificate_for_another_machine_is_not_etcds_here(pki, tmp_path):
    authority = Authority(tmp_path)
    pair = authority.issue("etcd", addresses=("192.0.2.77",))
    ours = authority.issue("sampan")

    async def main(members):
        client = f"&cert={ours.cert_path}&key={ours.key_path}"
        assert not await is_let_in(url_of(members, f"?cacert={authority.ca_path}{client}"))

    told = (
        "--cert-file", str(pair.cert_path), "--key-file", str(pair.key_path),
        "--client-cert-auth", "--trusted-ca-file", str(authority.ca_path),
    )  # fmt: skip
    with etcd_cluster(1, *told) as members:
        asyncio.run(main(members))
