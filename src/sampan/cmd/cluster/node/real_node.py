"""This machine as a node: a container runtime, the pods' network, and the node agent.

Job: prepare, start and stop them, in this order and in the other.
Invariant: nothing that only Linux has, and no gRPC, is imported before a real node is wanted.
"""

import asyncio
import os
import random
import ssl
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.client.contract import Client
from sampan.cmd.cluster import machine, node_accounts
from sampan.cmd.cluster.node.network import bare_node, claimed_pod_cidrs
from sampan.cmd.cluster.node.pod_network import NodePodNetwork, PluginPlaces
from sampan.cmd.cluster.node.pods_end import PodsEnd
from sampan.cmd.cluster.node.runtime import NodeRuntime
from sampan.cmd.cluster.nodes import (
    DNS_USER,
    LOCAL_PROVISIONER_USER,
    SERVER_GRACE_SECONDS,
    ClientMaker,
    NodeSetup,
    Together,
    all_ready,
    chosen_settings,
    listen,
)
from sampan.cmd.cluster.progress import Step
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.kubelet_config import read_config, with_config
from sampan.cmd.flags.node_flags import image_credentials
from sampan.cmd.settings import CLUSTER_DOMAIN
from sampan.core.fast_dataclass import replace
from sampan.core.http.origin import Origin
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, all_of

if TYPE_CHECKING:
    from sampan.kubelet.contracts.runtime import Runtime
    from sampan.kubelet.kubelet import Kubelet
    from sampan.kubelet.server.http_server import KubeletServer
    from sampan.kubelet.settings import KubeletSettings
    from sampan.kubelet.volumes.local_volumes import LocalVolumes

log = get_logger(__name__)

# Upstream has none by default; a fork bomb on a laptop should not take the machine with it.
POD_PIDS_LIMIT = 4096
HEALTHZ_PORT = 10248
DISK_FREE_PERCENT = 2
LOADED_MEANWHILE = (
    "kubelet.native.native_runtime",
    "network.services.proxy",
    "network.policies.enforcer",
    "network.dns.server",
    "kubelet.server.http_server",
    "kubelet.kubelet",
)


class RealNode:
    """This machine: containerd of our own or one that runs already, and the node agent."""

    mount_volumes = True

    def __init__(
        self,
        setup: NodeSetup,
        *,
        in_cluster: bool = True,
        provisions: bool = True,
        awaits_ready: bool = True,
    ) -> None:
        """`in_cluster`: the API is part of the same process. `awaits_ready`: it is on the same
        machine, so the node is Ready soon. `provisions`: there is a client for the part of the
        local provisioner that runs here."""
        self._in_cluster, self._provisions = in_cluster, provisions
        self._awaits_ready = awaits_ready
        settings, data = self._settings, self._data = setup.settings, setup.data
        self.identity, self._progress = setup.identity, setup.progress
        self._clock = setup.clock
        self._image_credentials = image_credentials(settings.node, data.kubelet, os.environ)
        self._config = read_config(settings.node)
        self._tasks = Tasks("node")
        self._runtime = NodeRuntime(settings, data, self._tasks, self._clock)
        self.pods = NodePodNetwork(setup)
        self._end = PodsEnd(data, self._progress)
        self._plugin_places: PluginPlaces | None = None
        self._server: KubeletServer | None = None
        self._kubelet: Kubelet | None = None
        self._client: Client | None = None

    async def place_of(self, kubelet: Origin) -> Origin:
        return kubelet

    @property
    def real_names(self) -> tuple[str, ...]:
        return (self.identity.name,)

    @property
    def containers(self) -> "Runtime | None":
        """Those who run them, once it is prepared."""
        return self._runtime.containers

    async def gateways(self) -> tuple[str, ...]:
        return await self.pods.gateways()

    async def prepare(self) -> None:
        with self._progress.step("containers", after="API server") as step:
            if self._settings.runtime == "native":
                step.detail = await self._start_native()
            else:
                step.detail = await self._start_cri()
            self._data.remember(runtime=self._settings.runtime)
            if self.pods.network is not None and self.pods.serves_names:
                assert self._runtime.containers is not None, "connected"
                self._runtime.containers.call_with_addresses(self.pods.network.admit)

    async def _start_native(self) -> str:
        await all_of([self._set_up_network(), self._runtime.find_programs(), self._load()])
        assert self._plugin_places is not None, "set up"
        return await self._runtime.start_native(*self._plugin_places, self.pods.interfaces)

    async def _set_up_network(self) -> None:
        self._plugin_places = await self.pods.set_up()

    async def _load(self) -> None:
        """What is imported at the latest when it is used: now other programs are waited for."""
        for module in LOADED_MEANWHILE:
            import_module(f"sampan.{module}")
            await asyncio.sleep(0)

    async def _start_cri(self) -> str:
        socket_path = self._settings.cri_socket
        if not socket_path:
            places = await self.pods.set_up()
            socket_path = await self._runtime.start_containerd(*places, self.pods.interfaces)
        said = await self._runtime.connect(socket_path)
        self._data.remember(cri_socket=socket_path)
        return said

    def act_together(self, together: Together) -> None:
        """There is one."""

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        with self._progress.step("node") as step:
            if self.pods.interfaces is not None:
                self.pods.interfaces.trace_to(metrics.traces)
            client = self._client = clients(f"system:node:{self.identity.name}")
            ours = self.pods.network is not None and self._settings.network != "none"
            if self._in_cluster and ours and self._settings.node.register:
                node = bare_node(self.identity.name, self._settings.node, self.pods.pod_cidrs)
                await claimed_pod_cidrs(client, node, self._clock)
            # The network first: its programs run while the agent starts.
            network = self._start_network(clients, metrics)
            await all_of([network, self._start_agent(client, metrics, tls, step)])
            if self._provisions:
                self._tasks.supervise("local volumes", self._local_volumes(clients).run)
            if self._awaits_ready and self._settings.network != "none":
                assert self._kubelet is not None, "started"
                await all_ready([self._kubelet.node_ready])
                step.detail += ", Ready"

    async def _start_agent(
        self, client: Client, metrics: Metrics, tls: ssl.SSLContext, step: Step
    ) -> None:
        server = self._server = self._kubelet_server(client, metrics)
        address = self.identity.address
        wanted = self._settings.node.port or int(self._config.get("port") or 0)
        port, taken = await listen(server, address, wanted, tls)
        kubelet = self._kubelet = self._node_agent(client, metrics, port)
        self._tasks.supervise("kubelet", kubelet.run)
        await self._serve_health(server, kubelet.settings.healthz)
        self._runtime.look_for_stray_shims()
        step.detail = f"{self.identity.name} ({address}{taken})"

    async def _serve_health(self, server: "KubeletServer", place: tuple[str, int]) -> None:
        """Several clusters on one machine share its addresses: the first has the port."""
        if not place[1]:
            return
        try:
            await server.start_health(*place)
        except OSError as error:
            log.info("the kubelet's health port is taken", port=place[1], error=error)

    def _kubelet_server(self, client: Client, metrics: Metrics) -> "KubeletServer":
        from sampan.kubelet.server.access import ServerAccess
        from sampan.kubelet.server.http_server import KubeletServer
        from sampan.kubelet.server.lookup import RuntimeLookup

        assert self._runtime.containers is not None, "prepare comes before start"
        lookup = RuntimeLookup(
            lambda: self._kubelet.pods() if self._kubelet else [],
            self._runtime.containers,
            lambda uid: self._kubelet.last_seen(uid) if self._kubelet else None,
        )
        reviews = None if self._settings.node.standalone else client
        return KubeletServer(
            lookup, self._runtime.containers, clock=self._clock, metrics=metrics,
            healthy=lambda: self._kubelet.healthy() if self._kubelet else "",
            agent=lambda: self._kubelet,
            checkpoints=str(self._data.kubelet / "checkpoints"),
            access=ServerAccess(self.identity.name, reviews, self._clock),
        )  # fmt: skip

    def _node_agent(self, client: Client, metrics: Metrics, port: int) -> "Kubelet":
        from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure
        from sampan.kubelet.context import NodeContext
        from sampan.kubelet.kubelet import Kubelet
        from sampan.kubelet.resource_managers.managers import CannotManage
        from sampan.kubelet.resource_managers.state_file import BadState

        assert self._runtime.containers is not None, "prepare comes before start"
        context = NodeContext(
            settings=self._kubelet_settings(port),
            client=client,
            runtime=self._runtime.containers,
            clock=self._clock,
            metrics=metrics,
            rng=random.Random(),
        )
        self._say_what_has_no_limits()
        try:
            return Kubelet(context)
        except CgroupFailure as error:
            what = "--cgroup-driver none runs pods without cgroups of their own"
            raise CannotStart(f"{error}; {what}") from error
        except (CannotManage, BadState) as error:
            raise CannotStart(str(error)) from error

    def _say_what_has_no_limits(self) -> None:
        from sampan.kubelet.cgroups.delegation import WANTED, offered_controllers

        offered = offered_controllers(self._settings.cgroup_place)
        lacking = [name for name in WANTED if offered is not None and name not in offered]
        if lacking and self._runtime.cgroup_driver:
            self._progress.warn(
                f"limits and requests of {', '.join(lacking)} have no effect: the cgroup "
                f"{self._settings.cgroup_place or '/'} has no such controller"
            )

    async def _start_network(self, clients: ClientMaker, metrics: Metrics) -> None:
        if self.pods.network is None or not self.pods.serves_names:
            return
        network, client = self.pods.network, clients(node_accounts.NETWORK_USER)
        if self._in_cluster:
            await network.start(client, clients(DNS_USER), metrics)
        else:
            # The API may be away, or refuse: pods run meanwhile.
            self._tasks.supervise("network", lambda: network.start(client, None, metrics))

    def hurry(self) -> None:
        self._end.hurry()

    async def stop(self) -> None:
        if self._kubelet is not None:
            await self._end.shut_down(self._kubelet.shut_down)
        await self._tasks.stop()
        if self.pods.network is not None:
            await self.pods.network.stop()
        if self._server is not None:
            await self._server.stop(SERVER_GRACE_SECONDS)
        if self._runtime.containers is not None and not self._settings.keep_pods:
            await self._end.stop(self._runtime.containers)
            if self._client is not None and not self._settings.node.standalone:
                await self._end.tell(self._client, self.identity.name, self._clock.now())
            if self._runtime.cgroup_driver:
                from sampan.kubelet.cgroups.pod_cgroups import remove_root

                remove_root(self._data.root, self._settings.cgroup_place)
        await self._runtime.stop()
        if self.pods.interfaces is not None:
            await self.pods.interfaces.stop()

    def _kubelet_settings(self, port: int) -> "KubeletSettings":
        from sampan.kubelet.cgroups.limits import root_of
        from sampan.kubelet.cgroups.pod_cgroups import find_hierarchies
        from sampan.kubelet.eviction.eviction_rules import (
            MEMORY,
            NODEFS,
            EvictionSettings,
            Threshold,
        )
        from sampan.kubelet.images.image_gc import ImageGCPolicy
        from sampan.kubelet.native.machine import is_selinux_on
        from sampan.kubelet.runtime.pod_logs import CONTAINER_LOGS, POD_LOGS
        from sampan.kubelet.settings import KubeletSettings

        driver, hierarchies = self._runtime.cgroup_driver, find_hierarchies()
        own_logs = str(self._data.root / "logs" / "pods")
        is_unified = hierarchies is not None and hierarchies.unified is not None
        # In a user namespace of our own /var/log is nobody's.
        shared = not self._settings.rootless
        settings = KubeletSettings(
            self.identity.name,
            node_ips=self.identity.addresses,
            root_dir=str(self._data.kubelet),
            log_dir=POD_LOGS if shared else own_logs,
            log_registry=own_logs if shared else "",
            container_logs=CONTAINER_LOGS if shared else "",
            port=port,
            healthz=("127.0.0.1", HEALTHZ_PORT if shared else 0),
            cluster_domain=CLUSTER_DOMAIN,
            cluster_dns=self.pods.dns_addresses,
            hosts_file=Path("/etc/hosts").read_text(),
            # A runtime that does not say how it makes cgroups chooses their place alone.
            cgroup_root=f"{self._settings.cgroup_place}{root_of(self._data.root)}"
            if driver
            else "",
            cgroup_driver=driver or "cgroupfs",
            runtime_name=self._runtime.name,
            pod_pids_limit=POD_PIDS_LIMIT if driver else -1,
            selinux=is_selinux_on(),
            apparmor=machine.has_apparmor(),
            unified=is_unified,
            oom_group=is_unified,
            shapes_bandwidth=self._shapes_bandwidth(),
            image_directory=str(self._data.root),
            image_credentials=self._image_credentials,
            # A disk that is nine tenths full is an ordinary one here: only the rest is kept free.
            eviction=EvictionSettings(
                (Threshold(MEMORY, 100 << 20), Threshold(NODEFS, percent=DISK_FREE_PERCENT))
            ),
            image_garbage=ImageGCPolicy(high_percent=97, low_percent=95),
            checkpoint=str(self._data.kubelet / "allocated_pods_state"),
            **chosen_settings(self._settings.node),
        )
        return self._configured(settings)

    def _configured(self, settings: "KubeletSettings") -> "KubeletSettings":
        """Raises CannotStart."""
        node = self._settings.node
        settings = with_config(settings, self._config, node.config or node.config_dir)
        dns = machine.host_dns(settings.resolv_conf, self._settings.name_servers)
        return replace(
            settings,
            host_dns=dns.servers,
            host_searches=dns.searches,
            host_dns_options=dns.options,
        )

    def _shapes_bandwidth(self) -> bool:
        from sampan.network import cni_configuration

        # Whether another's network does is not known here.
        foreign = bool(self._settings.cri_socket) or self._settings.network == "none"
        own = self.pods.interfaces is not None
        return own or foreign or cni_configuration.shapes_bandwidth()

    def _local_volumes(self, clients: ClientMaker) -> "LocalVolumes":
        from sampan.kubelet.volumes.local_volumes import LocalVolumes

        return LocalVolumes(
            client=clients(LOCAL_PROVISIONER_USER),
            node_client=clients(f"system:node:{self.identity.name}"),
            node_name=self.identity.name,
            root=str(self._data.root / "volumes"),
            clock=self._clock,
        )
