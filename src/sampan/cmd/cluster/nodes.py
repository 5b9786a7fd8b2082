"""The nodes of an all-in-one cluster: a real one, many simulated ones, or none.

Job: what the cluster asks of its nodes, and what all sorts of them share.
Invariant: nothing that only Linux has, and no gRPC, is imported before a real node is wanted.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sampan.api.objects import Obj
from sampan.apiserver.authn.user import MASTERS, User, component
from sampan.client.contract import Client
from sampan.cmd.cluster import machine
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart, reason_of
from sampan.cmd.flags.node_flags import shutdown_steps
from sampan.cmd.settings import NodeChoices, UpSettings
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.flag import Flag
from sampan.core.http.origin import Origin
from sampan.core.metrics import Metrics

if TYPE_CHECKING:
    from sampan.kubelet.server.http_server import KubeletServer

READY_SECONDS = 60.0
TOLD_EACH = 100
SERVER_GRACE_SECONDS = 1.0
KUBELET_PORT = 10250
NODES_DIRECTORY = "nodes"  # in a data directory: of real nodes besides this machine itself
LOCAL_PROVISIONER_USER = "system:serviceaccount:kube-system:local-provisioner"
DNS_USER = "system:sampan:cluster-dns"

PRETENDED_DRIVERS = "system:sampan:pretended-drivers"

ClientMaker = Callable[[str], Client]  # user name → a client that acts as that user


def part_of_cluster(name: str) -> User:
    """Who acts inside this process under a name. Drivers that are only pretended are installed as
    an administrator would install them."""
    return User(name, (MASTERS,)) if name == PRETENDED_DRIVERS else component(name)


# Node → renewTime of its lease, at once for many; those that have to renew theirs by themselves.
Renew = Callable[[Mapping[str, str]], Awaitable[Collection[str]]]
# A node, and others that are like it → their addresses; those that have to register by themselves.
Register = Callable[[str, Mapping[str, Sequence[str]]], Awaitable[Collection[str]]]
# Nodes that are well, with their images where these are new; those that have to say so themselves.
Report = Callable[[Mapping[str, Sequence[Obj] | None]], Awaitable[Collection[str]]]


# Path → what a POST there does.
Offer = Callable[[str, Callable[[Obj], Awaitable[Obj]]], None]


@dataclass(frozen=True, slots=True)
class Together:
    """What the API server does for many nodes of this cluster at once."""

    renew: Renew
    register: Register | None = None  # None: each has an agent from the start
    report: Report | None = None  # None: each tells of itself
    offer: Offer | None = None  # where else it can be asked for something


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    name: str
    addresses: tuple[str, ...]  # one of each family, the main one first

    @property
    def address(self) -> str:
        return self.addresses[0]


@dataclass(frozen=True, slots=True)
class Again:
    """How this program is started again, as a part of the same cluster."""

    arguments: tuple[str, ...]  # the verb and its flags
    lock: int  # the descriptor that holds the data directory


@dataclass(frozen=True, slots=True)
class NodeSetup:
    """What every sort of node of this process is made with."""

    settings: UpSettings
    data: DataDir
    identity: NodeIdentity
    progress: Progress
    clock: Clock
    again: Again | None = None  # None: no process is started for a node


def own_identity(settings: UpSettings) -> NodeIdentity:
    """Of this machine as a node."""
    return NodeIdentity(
        name=settings.node_name or machine.node_name(socket.gethostname()),
        addresses=machine.node_addresses(settings.node_ips, settings.ranges.families),
    )


class Nodes(Protocol):
    @property
    def identity(self) -> NodeIdentity:
        """Of this machine among them, once its gateways are known."""

    @property
    def real_names(self) -> tuple[str, ...]:
        """Of those with real containers."""

    @property
    def mount_volumes(self) -> bool:
        """Do they really mount volumes, a service account's token among them?"""

    async def place_of(self, kubelet: Origin) -> Origin:
        """Where a node's kubelet is found, if not at its address."""

    async def gateways(self) -> tuple[str, ...]:
        """The addresses of this machine that only its own pods can reach, one of each family; none
        where there is no pod network of ours."""

    async def prepare(self) -> None:
        """What needs no API server: runs beside its start."""

    def act_together(self, together: Together) -> None:
        """Before they are started."""

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        """Returns when every node is Ready."""

    def hurry(self) -> None:
        """`stop` shall not wait for containers."""

    async def stop(self) -> None: ...


class NoNodes:
    mount_volumes = True  # those that join later do, as far as we know
    real_names: tuple[str, ...] = ()

    def __init__(self, identity: NodeIdentity) -> None:
        self.identity = identity

    async def place_of(self, kubelet: Origin) -> Origin:
        return kubelet

    async def gateways(self) -> tuple[str, ...]:
        return ()

    async def prepare(self) -> None:
        """Nothing to do."""

    def act_together(self, together: Together) -> None:
        """Nothing to do."""

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        """Nothing to do."""

    def hurry(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""


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


async def all_ready(nodes: Sequence[Flag], told: Callable[[int, int], None] | None = None) -> None:
    """`told` hears how many are, now and then. Many on a busy machine take their time: only when
    none has become Ready for long is something wrong."""
    try:
        for number, ready in enumerate(nodes):
            async with asyncio.timeout(READY_SECONDS):
                await ready.wait()
            if told is not None and number % TOLD_EACH == 0:
                told(number + 1, len(nodes))
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
