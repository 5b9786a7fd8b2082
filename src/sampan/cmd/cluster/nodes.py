"""The nodes of an all-in-one cluster: one real one, many simulated ones, or none.

Job: choose by the settings and by what the machine has; prepare, start and stop them.
Invariant: nothing that only Linux has, and no gRPC, is imported before a real node is wanted.
"""

import asyncio
import ipaddress
import os
import random
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sampan.client.contract import Client
from sampan.cmd.cluster import machine, node_accounts
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.network import (
    NodeNetwork,
    NodeNetworkSettings,
    bare_node,
    claimed_pod_cidr,
)
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges, dns_address
from sampan.cmd.errors import CannotStart, reason_of
from sampan.cmd.flags.kubelet_config import with_config
from sampan.cmd.flags.node_flags import cgroup_driver, image_credentials, shutdown_steps
from sampan.cmd.settings import CLUSTER_DOMAIN, NodeChoices, UpSettings
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http_client import Origin
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, all_of

if TYPE_CHECKING:
    from sampan.kubelet.containerd.process import PrivateContainerd
    from sampan.kubelet.contracts.runtime import ObservedPod, Runtime
    from sampan.kubelet.kubelet import Kubelet
    from sampan.kubelet.server.http_server import KubeletServer
    from sampan.kubelet.settings import KubeletSettings
    from sampan.kubelet.volumes.local_volumes import LocalVolumes
    from sampan.network.cni import PodNetwork
    from sampan.network.pods.pod_interfaces import PodInterfaces

READY_SECONDS = 60.0
CONNECT_SECONDS = 20.0
STOP_GRACE_SECONDS = 10.0
SERVER_GRACE_SECONDS = 1.0
# Upstream has none by default; a fork bomb on a laptop should not take the machine with it.
POD_PIDS_LIMIT = 4096
DISK_FREE_PERCENT = 2
KUBELET_PORT = 10250
LOCAL_PROVISIONER_USER = "system:serviceaccount:kube-system:local-provisioner"
DNS_USER = "system:sampan:cluster-dns"

ClientMaker = Callable[[str], Client]  # user name → a client that acts as that user


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    name: str
    address: str


class Nodes(Protocol):
    @property
    def mount_volumes(self) -> bool:
        """Do they really mount volumes, a service account's token among them?"""

    async def place_of(self, kubelet: Origin) -> Origin:
        """Where a node's kubelet is found, if not at its address."""

    async def gateway(self) -> str:
        """The address of this machine that only its own pods can reach; empty where there is no
        pod network of ours."""

    async def prepare(self) -> None:
        """What needs no API server: runs beside its start."""

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        """Returns when every node is Ready."""

    def hurry(self) -> None:
        """`stop` shall not wait for containers."""

    async def stop(self) -> None: ...


class NoNodes:
    mount_volumes = True  # those that join later do, as far as we know

    async def place_of(self, kubelet: Origin) -> Origin:
        return kubelet

    async def gateway(self) -> str:
        return ""

    async def prepare(self) -> None:
        """Nothing to do."""

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        """Nothing to do."""

    def hurry(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""


class RealNode:
    """This machine: containerd of our own or one that runs already, and the node agent."""

    mount_volumes = True

    def __init__(
        self,
        settings: UpSettings,
        data: DataDir,
        identity: NodeIdentity,
        progress: Progress,
        clock: Clock,
        *,
        in_cluster: bool = True,
        provisions: bool = True,
    ) -> None:
        """`in_cluster`: the API is part of the same process, so the node is Ready soon.
        `provisions`: there is a client for the part of the local provisioner that runs here."""
        self._provisions = provisions
        self._settings, self._data, self._identity = settings, data, identity
        self._ranges = chosen_ranges(settings.ranges, {})
        self._image_credentials = image_credentials(settings.node, data.kubelet, os.environ)
        self._runtime_name, self._cgroup_driver = "containerd", ""
        if not settings.cri_socket:
            self._cgroup_driver = cgroup_driver(settings.node, "", private=True)
        self._in_cluster = in_cluster
        self._progress, self._clock = progress, clock
        self._tasks = Tasks("node")
        self._containerd: PrivateContainerd | None = None
        self._runtime: Runtime | None = None
        self._server: KubeletServer | None = None
        self._kubelet: Kubelet | None = None
        self._network: NodeNetwork | None = None  # where the pods' network is ours
        self._interfaces: PodInterfaces | None = None  # where their interfaces are, too
        self.pod_cidr = ""  # to be set before `prepare` where the cluster gave one
        self._grace_seconds = STOP_GRACE_SECONDS
        self._stopping: list[asyncio.Timeout] = []  # one for all that takes its time to end

    @property
    def _serves_names(self) -> bool:
        """The pods' network is ours, and there is an API to know Services from."""
        return self._network is not None and not self._settings.node.standalone

    async def place_of(self, kubelet: Origin) -> Origin:
        return kubelet

    async def gateway(self) -> str:
        from sampan.network import cni

        if self._settings.cri_socket or self._settings.network == "none":
            return ""
        try:
            network = await asyncio.to_thread(
                cni.reserve, self._data.root, cluster_cidr=self._ranges.cluster
            )
        except cni.NetworkError as error:
            raise CannotStart(str(error)) from error
        return network.gateway

    async def prepare(self) -> None:
        with self._progress.step("containers") as step:
            socket_path = self._settings.cri_socket
            if not socket_path:
                socket_path = await self._start_containerd()
            step.detail = await self._connect(socket_path)
            self._data.remember(cri_socket=socket_path)

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure
        from sampan.kubelet.context import NodeContext
        from sampan.kubelet.kubelet import Kubelet
        from sampan.kubelet.server.access import ServerAccess
        from sampan.kubelet.server.http_server import KubeletServer
        from sampan.kubelet.server.lookup import RuntimeLookup

        assert self._runtime is not None, "prepare comes before start"
        with self._progress.step("node") as step:
            kubelet: Kubelet | None = None
            client = clients(f"system:node:{self._identity.name}")
            if self._in_cluster and self._network is not None and self._settings.node.register:
                node = bare_node(self._identity.name, self._settings.node, self.pod_cidr)
                await claimed_pod_cidr(client, node, self._clock)
            lookup = RuntimeLookup(
                lambda: kubelet.pods() if kubelet else [],
                self._runtime,
                lambda uid: kubelet.last_seen(uid) if kubelet else None,
            )
            server = KubeletServer(
                lookup, self._runtime, clock=self._clock, metrics=metrics,
                healthy=lambda: kubelet.healthy() if kubelet else "", agent=lambda: kubelet,
                checkpoints=str(self._data.kubelet / "checkpoints"),
                access=ServerAccess(
                    self._identity.name,
                    None if self._settings.node.standalone else client,
                    self._clock,
                ),
            )  # fmt: skip
            address = self._identity.address
            port, taken = await listen(server, address, self._settings.node.port, tls)
            self._server = server
            try:
                kubelet = Kubelet(
                    NodeContext(
                        settings=self._kubelet_settings(port),
                        client=client,
                        runtime=self._runtime,
                        clock=self._clock,
                        metrics=metrics,
                        rng=random.Random(),
                    )
                )
            except CgroupFailure as error:
                what = "--cgroup-driver none runs pods without cgroups of their own"
                raise CannotStart(f"{error}; {what}") from error
            self._kubelet = kubelet
            self._tasks.supervise("kubelet", kubelet.run)
            self._look_for_stray_shims()
            await self._start_network(clients, metrics)
            step.detail = f"{self._identity.name} ({address}{taken})"
            if self._provisions:
                self._tasks.supervise("local volumes", self._local_volumes(clients).run)
            if self._in_cluster and self._settings.network != "none":
                await all_ready([kubelet.node_ready])
                step.detail += ", Ready"

    async def _start_network(self, clients: ClientMaker, metrics: Metrics) -> None:
        if self._network is None or not self._serves_names:
            return
        network, client = self._network, clients(node_accounts.NETWORK_USER)
        if self._in_cluster:
            await network.start(client, clients(DNS_USER), metrics)
        else:
            # The API may be away, or refuse: pods run meanwhile.
            self._tasks.supervise("network", lambda: network.start(client, None, metrics))

    def hurry(self) -> None:
        self._grace_seconds = 0.0
        now = asyncio.get_running_loop().time()
        for gentle in self._stopping:
            gentle.reschedule(now)

    async def stop(self) -> None:
        await self._shut_down()
        await self._tasks.stop()
        if self._network is not None:
            await self._network.stop()
        if self._server is not None:
            await self._server.stop(SERVER_GRACE_SECONDS)
        if self._runtime is not None:
            await self._stop_runtime(self._runtime)
        if self._interfaces is not None:
            await self._interfaces.stop()

    async def _stop_runtime(self, runtime: "Runtime") -> None:
        if not self._settings.keep_pods:
            await self._stop_pods()
            await self._unmount_volumes()
            self._remove_cgroups()
        await runtime.close()
        if self._containerd is not None:
            await self._containerd.stop()

    async def _shut_down(self) -> None:
        """Where a time for it is set: pods end in order, and say why, until the user hurries."""
        if self._kubelet is None or self._grace_seconds == 0:
            return
        try:
            async with asyncio.timeout(None) as gentle:
                self._stopping.append(gentle)
                await self._kubelet.shut_down()
        except TimeoutError:
            self._progress.warn("the shutdown was cut short: some pods have not said why they end")
        finally:
            self._stopping.remove(gentle)

    def _look_for_stray_shims(self) -> None:
        self._tasks.supervise("stray shims", self._remove_stray_shims)

    async def _remove_stray_shims(self) -> None:
        """An earlier sampan, or containerd, may have been killed in the middle of a pod's start."""
        from sampan.kubelet.containerd.config import layout
        from sampan.kubelet.containerd.stray_shims import HostLocalAddresses, remove_strays
        from sampan.network import cni

        if self._containerd is not None and self._runtime is not None:
            await remove_strays(
                layout(self._data.root),
                self._interfaces or HostLocalAddresses(cni.ipam_directory(self._data.root)),
                self._runtime,
                environment=os.environ,
                clock=self._clock,
            )

    async def _start_containerd(self) -> str:
        from sampan.kubelet.containerd.config import ContainerdError
        from sampan.network import cni

        if self._settings.network == "none":
            return await self._start_foreign_network()
        try:
            # Found or made in a thread: it runs nft, and the API server starts meanwhile.
            network = await asyncio.to_thread(
                cni.set_up, self._data.root, (self._ranges.service,), (self._ranges.cluster,),
                self.pod_cidr,
                reference=self._settings.cni == "reference",
            )  # fmt: skip
            self.pod_cidr = network.subnet
            await self._start_interfaces(network)
            self._warn_of_overlaps()
            self._network = NodeNetwork(
                self._network_settings(network), self._clock, self._interfaces
            )
            self._containerd = self._private_containerd(
                cni.conf_directory(self._data.root), cni.plugins_of(self._data.root)
            )
            await self._containerd.start()
        except (ContainerdError, cni.NetworkError) as error:
            raise CannotStart(str(error)) from error
        return self._containerd.socket_path

    async def _start_foreign_network(self) -> str:
        """Whatever CNI plugin the user configures, before or after: the node is Ready then."""
        from sampan.kubelet.containerd.config import ContainerdError
        from sampan.network import cni

        self._progress.warn(
            f"--network none: the node is Ready when {cni.FOREIGN_CONFIGURATIONS} has a CNI "
            "configuration; Services, names and policies are left to what you install"
        )
        self._containerd = self._private_containerd(
            Path(cni.FOREIGN_CONFIGURATIONS), cni.foreign_plugins()
        )
        try:
            await self._containerd.start()
        except ContainerdError as error:
            raise CannotStart(str(error)) from error
        return self._containerd.socket_path

    def _private_containerd(self, conf_dir: Path, bin_dir: Path) -> "PrivateContainerd":
        from sampan.kubelet.containerd.process import PrivateContainerd

        self._write_mirrors()
        return PrivateContainerd(
            self._data.root,
            cni_conf_dir=conf_dir,
            cni_bin_dir=bin_dir,
            environment=os.environ,
            clock=self._clock,
            cgroup_driver=self._cgroup_driver,
            came_back=self._look_for_stray_shims,
        )

    def _write_mirrors(self) -> None:
        from sampan.kubelet.containerd.config import ContainerdError, layout
        from sampan.kubelet.containerd.registry_mirrors import write_mirrors

        mirrors: dict[str, list[str]] = {}
        for registry, url in self._settings.node.registry_mirrors:
            mirrors.setdefault(registry, []).append(url)
        try:
            write_mirrors(layout(self._data.root).home / "certs.d", mirrors)
        except ContainerdError as error:
            raise CannotStart(str(error)) from error

    async def _start_interfaces(self, network: "PodNetwork") -> None:
        from sampan.network import cni, netlink
        from sampan.network.nftables.nft import NftError
        from sampan.network.overlay.routes import pod_mtu
        from sampan.network.pods.pod_interfaces import PodInterfaces

        if not cni.uses_own_plugin(self._data.root):
            return
        uplink = netlink.mtu_towards(self._identity.address)
        mtu = pod_mtu(uplink, self._settings.network)
        interfaces = PodInterfaces(cni.interface_settings(self._data.root, network, mtu))
        try:
            await interfaces.start()
        except (OSError, NftError) as error:
            raise CannotStart(f"pods' network interfaces cannot be made: {error}") from error
        self._interfaces = interfaces

    def _warn_of_overlaps(self) -> None:
        """A machine in the service range cannot be reached from here any more."""
        from sampan.network import netlink

        services = ipaddress.ip_network(self._ranges.service)
        for text in netlink.own_networks():
            if services.overlaps(ipaddress.ip_network(text)):
                self._progress.warn(
                    f"this machine's network {text} overlaps the Services' {services}: "
                    "what both have is taken for Services"
                )

    def _network_settings(self, network: "PodNetwork") -> NodeNetworkSettings:
        from sampan.network import cni, netlink
        from sampan.network.overlay.overlay import OverlaySettings

        return NodeNetworkSettings(
            self._identity.name,
            cni.proxy_place(network, (self._ranges.service,), (self._ranges.cluster,)),
            network.gateway,
            CLUSTER_DOMAIN,
            dns_address(self._ranges),
            machine.host_dns().servers,
            stub_domains=self._settings.stub_domains,
            overlay=OverlaySettings(
                self._identity.name, self._identity.address, network.subnet, network.bridge,
                str(self._data.root), self._settings.network,
                netlink.mtu_towards(self._identity.address),
            ),
        )  # fmt: skip

    async def _connect(self, socket_path: str) -> str:
        from sampan.kubelet.containerd.hello_image import HELLO_IMAGE, hello_archive
        from sampan.kubelet.containerd.pause_image import PAUSE_IMAGE, ensure_images, pause_archive
        from sampan.kubelet.contracts.runtime import RuntimeFailure
        from sampan.kubelet.runtime.cri_runtime import CriRuntime

        runtime = CriRuntime(socket_path, self._clock)
        if self._network is not None and self._serves_names:
            runtime.call_with_addresses(self._network.admit)
        self._runtime = runtime
        try:
            info = await runtime.connect(CONNECT_SECONDS)
            self._runtime_name = info.name
            if self._containerd is not None:
                own = {PAUSE_IMAGE: pause_archive(), HELLO_IMAGE: hello_archive()}
                await ensure_images(runtime, socket_path, self._data.root, own, self._clock)
            else:
                said = await runtime.cgroup_driver()
                self._cgroup_driver = cgroup_driver(self._settings.node, said, private=False)
        except RuntimeFailure as error:
            raise CannotStart(nobody_at(socket_path, str(error))) from error
        return f"{info.name} {info.version}"

    def _kubelet_settings(self, port: int) -> "KubeletSettings":
        from sampan.kubelet.cgroups.limits import root_of
        from sampan.kubelet.eviction.eviction_rules import (
            MEMORY,
            NODEFS,
            EvictionSettings,
            Threshold,
        )
        from sampan.kubelet.images.image_gc import ImageGarbageSettings
        from sampan.kubelet.settings import KubeletSettings
        from sampan.network import cni

        dns = machine.host_dns()
        settings = KubeletSettings(
            self._identity.name,
            node_ips=(self._identity.address,),
            root_dir=str(self._data.kubelet),
            log_dir=str(self._data.root / "logs" / "pods"),
            port=port,
            cluster_domain=CLUSTER_DOMAIN,
            cluster_dns=(dns_address(self._ranges),) if self._serves_names else (),
            host_dns=dns.servers,
            host_searches=dns.searches,
            host_dns_options=dns.options,
            hosts_file=Path("/etc/hosts").read_text(),
            # A runtime that does not say how it makes cgroups chooses their place alone.
            cgroup_root=root_of(self._data.root) if self._cgroup_driver else "",
            cgroup_driver=self._cgroup_driver or "cgroupfs",
            runtime_name=self._runtime_name,
            pod_pids_limit=POD_PIDS_LIMIT if self._cgroup_driver else -1,
            # Whether another runtime's network does is not known here.
            shapes_bandwidth=self._containerd is None or cni.shapes_bandwidth(),
            image_directory=str(self._data.root),
            image_credentials=self._image_credentials,
            # A disk that is nine tenths full is an ordinary one here: only the rest is kept free.
            eviction=EvictionSettings(
                (Threshold(MEMORY, 100 << 20), Threshold(NODEFS, percent=DISK_FREE_PERCENT))
            ),
            image_garbage=ImageGarbageSettings(high_percent=97, low_percent=95),
            checkpoint=str(self._data.kubelet / "allocated_pods_state"),
            **chosen_settings(self._settings.node),
        )
        return with_config(settings, self._settings.node.config)

    def _local_volumes(self, clients: ClientMaker) -> "LocalVolumes":
        from sampan.kubelet.volumes.local_volumes import LocalVolumes

        return LocalVolumes(
            client=clients(LOCAL_PROVISIONER_USER),
            node_client=clients(f"system:node:{self._identity.name}"),
            node_name=self._identity.name,
            root=str(self._data.root / "volumes"),
            clock=self._clock,
        )

    async def _stop_pods(self) -> None:
        """Like switching the machine off: containers end, the API's objects stay."""
        from sampan.kubelet.contracts.runtime import RuntimeFailure

        assert self._runtime is not None
        try:
            pods = await self._runtime.pods()
            running = [pod for pod in pods if any(sandbox.ready for sandbox in pod.sandboxes)]
            if not running:
                return
            with self._progress.step("pods") as step:
                await all_of(self._stop_pod(pod) for pod in running)
                step.detail = f"{len(running)} stopped"
        except RuntimeFailure as error:
            self._progress.warn(f"some containers may still run: {error}")

    async def _unmount_volumes(self) -> None:
        """What is in memory goes with the machine's power, too."""
        from sampan.kubelet.volumes.mounts import unmount_below

        try:
            await asyncio.to_thread(unmount_below, str(self._data.kubelet))
        except OSError as error:
            self._progress.warn(f"some volumes may still be mounted: {error}")

    def _remove_cgroups(self) -> None:
        from sampan.kubelet.cgroups.pod_cgroups import remove_root

        if self._cgroup_driver:
            remove_root(self._data.root)

    async def _stop_pod(self, pod: "ObservedPod") -> None:
        assert self._runtime is not None
        try:
            async with asyncio.timeout(None) as gentle:
                self._stopping.append(gentle)
                await self._stop_containers(pod, self._grace_seconds)
        except TimeoutError:
            await self._stop_containers(pod, 0.0)
        finally:
            self._stopping.remove(gentle)
        for sandbox in pod.sandboxes:
            await self._runtime.stop_sandbox(sandbox.id)

    async def _stop_containers(self, pod: "ObservedPod", grace_seconds: float) -> None:
        assert self._runtime is not None
        runtime = self._runtime
        await all_of(
            runtime.stop_container(container.id, grace_seconds) for container in pod.containers
        )


def chosen_settings(node: NodeChoices) -> dict[str, Any]:
    """What the user chose, as words for KubeletSettings."""
    return {
        "manifests": node.manifests,
        "manifest_url": node.manifest_url,
        "manifest_url_headers": node.manifest_url_headers,
        "register_node": node.register,
        "standalone": node.standalone,
        "labels": node.labels,
        "taints": node.taints,
        "shutdown": shutdown_steps(node),
    }


def nobody_at(socket_path: str, why: str) -> str:
    return (
        f"no container runtime answers at {socket_path}: {why}; "
        "start it, or leave --cri-socket out to get a private containerd"
    )


async def all_ready(nodes: Sequence[asyncio.Event]) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS):
            for ready in nodes:
                await ready.wait()
    except TimeoutError:
        raise CannotStart(
            f"the node did not become Ready within {READY_SECONDS:.0f} s; "
            "--log-level info shows what it waits for"
        ) from None


async def listen(
    server: "KubeletServer", address: str, wanted: int, tls: ssl.SSLContext
) -> tuple[int, str]:
    """On the port that is wanted, else where everybody looks for a kubelet, else on any; and what
    to say of that."""
    if wanted:
        try:
            return await server.start(address, wanted, tls), ""
        except OSError as error:
            raise CannotStart(
                f"the node's own HTTP server cannot listen on {address} port {wanted} "
                f"({reason_of(error)}): choose another with --port, or --port 0 for any"
            ) from error
    try:
        return await server.start(address, KUBELET_PORT, tls), ""
    except OSError:
        port = await server.start(address, 0, tls)
        return port, f", port {port}: {KUBELET_PORT} is taken"
