"""`sampan service-proxy`: the service proxy as a process of its own, against any API server.

Job: settings → client, informers, ServiceProxy; start and stop them.
Invariant: the rules stay when it ends; `nft delete table ip sampan-proxy`, and of
    `ip6` where the cluster has that, removes them.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.client import kubeconfig
from sampan.client.informer import Informers
from sampan.client.rest import RestClient, connect
from sampan.cmd.background import own_log
from sampan.cmd.cluster import machine
from sampan.cmd.cluster.node.cluster_configuration import read_configuration, service_cidr
from sampan.cmd.cluster.process import run_alone
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import values
from sampan.cmd.settings import ProxyProcessSettings
from sampan.core import log
from sampan.core.clock import Clock, SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks

if TYPE_CHECKING:
    from sampan.cmd.cluster.node.proxy_healthz import ProxyHealthz

TABLE = "sampan-proxy"


def run(settings: ProxyProcessSettings) -> int:
    log.set_up(settings.log_level, own_file=own_log())
    progress = Progress(sys.stdout, SystemClock())
    process = ProxyProcess(settings, SystemClock())
    return run_alone(
        process,
        progress,
        settings.ready_file,
        lambda: f"ready in {progress.elapsed_seconds():.2f} s",
    )


class ProxyProcess:
    def __init__(self, settings: ProxyProcessSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._tasks = Tasks("proxy")
        self._client: RestClient | None = None
        self._informers: Informers | None = None
        self._doors: ProxyHealthz | None = None

    async def start(self) -> None:
        """Returns when every Service that there is can be reached. Raises CannotStart."""
        from sampan.cmd.cluster.node.proxy_healthz import ProxyHealthz
        from sampan.network.nftables import nft
        from sampan.network.services.proxy import ProxySettings, ServiceProxy
        from sampan.network.services.ruleset import ProxyPlace

        settings = self._settings
        try:
            nft.run(f"add table ip {TABLE}\n")  # said at once where there is no nftables
            loaded = kubeconfig.load(settings.kubeconfig, os.environ, str(Path.home()))
            connection = loaded.connection()
        except (nft.NftError, kubeconfig.KubeconfigError) as error:
            raise CannotStart(str(error)) from error
        self._client = connect(connection, clock=self._clock, user_agent="sampan-proxy")
        self._informers = Informers(self._client, clock=self._clock)
        cluster_cidrs, service_cidrs = await self._ranges(self._client)
        place = ProxyPlace(TABLE, cluster_cidrs=cluster_cidrs, service_cidrs=service_cidrs)
        name = settings.node_name or machine.node_name(os.uname().nodename)
        metrics = Metrics()
        proxy = ServiceProxy(
            ProxySettings(place, name, place.families), self._informers, self._clock, metrics
        )
        self._doors = ProxyHealthz(proxy, metrics, self._clock)
        await self._doors.open(settings.healthz_address, settings.metrics_address)
        self._informers.start()
        self._tasks.supervise("service proxy", proxy.run)
        await proxy.ready.wait()

    async def _ranges(self, client: RestClient) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of pods and of Services: as the flags say, or else the cluster."""
        pods, services = self._settings.cluster_cidrs, self._settings.service_cidrs
        known = None if pods and services else await read_configuration(client)
        if known is not None:
            pods = pods or values.names(known.cluster_cidr)
            services = services or values.names(known.service_cidr)
        return pods, services or values.names(await service_cidr(client))

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._doors is not None:
            await self._doors.close()
        if self._informers is not None:
            await self._informers.stop()
        if self._client is not None:
            await self._client.close()

    def hurry(self) -> None:
        """Nothing takes long here."""
