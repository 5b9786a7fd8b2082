import asyncio
import io

import pytest

from sampan.api.objects import name_of
from sampan.api.resources import LEASES, NAMESPACES
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.component import ComponentProcess
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.main import main
from sampan.cmd.settings import ComponentSettings, ControllersSettings
from sampan.cmd.verbs.controllers import Controlling
from sampan.core.clock import SystemClock
from tests.support.parts.served_api import served_api
from tests.support.worlds.control_plane import published_schema


def process(kubeconfig, **chosen):
    clock, progress = SystemClock(), Progress(io.StringIO(), SystemClock())
    component = ComponentSettings(kubeconfig)
    duty = Controlling(ControllersSettings(component, **chosen), progress, clock)
    return ComponentProcess(component, duty, progress, clock)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"controllers": ("*", "-jobb")}, '"-jobb" is not in the list of known controllers'),
        ({"root_ca_file": "/none"}, "/none"),
    ],
)
def test_what_is_of_no_use_is_refused_before_anything_starts(chosen, why):
    progress = Progress(io.StringIO(), SystemClock())
    settings = ControllersSettings(ComponentSettings(), **chosen)
    duty = Controlling(settings, progress, SystemClock())
    with pytest.raises(CannotStart, match=why):
        duty.prepare(kubeconfig.Connection("https://nowhere"))


def test_a_kubeconfig_that_is_not_there_is_refused(tmp_path):
    missing = str(tmp_path / "none")
    with pytest.raises(CannotStart, match="none"):
        asyncio.run(process(missing).start())


def test_the_command_says_so_in_one_line(tmp_path, capsys):
    assert main(["controllers", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("sampan: ")


@pytest.mark.slow
def test_over_https_it_leads_by_lease_works_and_gives_the_lease_back(tmp_path):
    async def story(served):
        clock = SystemClock()
        client = rest.connect(kubeconfig.load(str(served.admin), {}, "").connection(), clock=clock)
        running = process(str(served.admin), account_credentials=True)
        await running.start()
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}
        await client.create(NAMESPACES, namespace)
        await client.delete(NAMESPACES, "", "x")
        async with asyncio.timeout(20):
            while "x" in [name_of(one) for one in (await client.list(NAMESPACES)).items]:
                await asyncio.sleep(0.02)
        lease = await client.get(LEASES, "kube-system", "kube-controller-manager")
        assert lease["spec"]["holderIdentity"]
        await running.stop()
        lease = await client.get(LEASES, "kube-system", "kube-controller-manager")
        assert not lease["spec"].get("holderIdentity")
        await client.close()

    with served_api(published_schema(), tmp_path) as served:
        asyncio.run(story(served))
