"""`sampan apiserver`: what it needs to know, and that it then serves."""

import asyncio
import io
from dataclasses import replace

import pytest

from sampan.api.resources import CONFIG_MAPS, ENDPOINTS
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ApiServerProcessSettings, CertsSettings, ServerFiles
from sampan.cmd.verbs import certs
from sampan.cmd.verbs.apiserver import ApiServerProcess, files_of
from sampan.core.clock import SystemClock


def process(settings):
    return ApiServerProcess(settings, Progress(io.StringIO(), SystemClock()), SystemClock())


def test_without_a_directory_every_file_has_to_be_named():
    with pytest.raises(CannotStart, match=r"--cert-dir, or else --tls-private-key-file"):
        files_of(ServerFiles("c", "", "ca", "sa", "kc", "kk", "kca"), "")
    named = ServerFiles("c", "k", "ca", "sa", "kc", "kk", "kca")
    assert files_of(named, "") == named


def test_what_is_named_wins_over_the_directory():
    found = files_of(ServerFiles(certificate="mine"), "/pki")
    assert (found.certificate, found.key) == ("mine", "/pki/apiserver.key")
    assert (found.client_ca, found.token_key) == ("/pki/ca.crt", "/pki/sa.key")


async def refused(settings, why):
    starting = process(settings)
    with pytest.raises(CannotStart, match=why):
        await starting.start()
    await starting.stop()


def test_it_makes_no_authority_of_its_own(tmp_path):
    settings = ApiServerProcessSettings("memory:", cert_dir=str(tmp_path))
    asyncio.run(refused(settings, "`sampan certs` makes them"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_none_is_named(tmp_path):
    certs.make(CertsSettings(str(tmp_path), "https://a:1"), SystemClock())
    files = ServerFiles(certificate=str(tmp_path / "none"), key=str(tmp_path / "none"))
    settings = ApiServerProcessSettings("memory:", cert_dir=str(tmp_path), files=files)
    asyncio.run(refused(settings, "none"))


@pytest.mark.slow
def test_it_serves_whom_its_authority_knows(tmp_path):
    certs.make(CertsSettings(str(tmp_path), "https://127.0.0.1:1"), SystemClock())

    async def story():
        settings = ApiServerProcessSettings(
            f"sqlite:///{tmp_path}/s.db", cert_dir=str(tmp_path), port=0,
            advertise_address="192.0.2.7", service_cidrs=("10.5.0.0/16",),
        )  # fmt: skip
        running = process(settings)
        await running.start()
        for file in ("admin.conf", "scheduler.conf"):
            known = kubeconfig.load(str(tmp_path / file), {}, "").connection()
            here = replace(known, server=f"https://127.0.0.1:{running.port}")
            client = rest.connect(here, clock=SystemClock())
            if file == "admin.conf":
                endpoints = await client.get(ENDPOINTS, "default", "kubernetes")
                assert endpoints["subsets"][0]["addresses"] == [{"ip": "192.0.2.7"}]
            else:
                with pytest.raises(Exception, match="system:kube-scheduler"):
                    await client.list(CONFIG_MAPS, "default")
            await client.close()
        await running.stop()

    asyncio.run(story())
