"""The network of a node: the parts of network/ that run beside the node agent.

Job: settings → the parts that keep the node's rules and names; start and stop them.
Invariant: nothing that only Linux has is imported before a real node is wanted.
"""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, name_of
from sampan.api.resources import NODES
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.cmd.cluster.node.proxy_healthz import ProxyHealthz
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import NodeChoices, StubDomain
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.runtime import RuntimeFailure

if TYPE_CHECKING:
    from sampan.network.dns.server import ClusterDns
    from sampan.network.nftables.queries import WrittenRules
    from sampan.network.overlay.overlay import OverlaySettings
    from sampan.network.pods.pod_interfaces import PodInterfaces
    from sampan.network.policies.enforcer import PolicyEnforcer
    from sampan.network.services.proxy import ServiceProxy
    from sampan.network.services.ruleset import ProxyPlace

POD_CIDR_SECONDS = 10.0
POD_CIDR_LOOK_SECONDS = 0.1
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NodeNetworkSettings:
    node_name: str
    place: "ProxyPlace"
    cluster_domain: str
    dns_addresses: tuple[str, ...]  # of the Service kube-dns; none: no name server of ours
    name_servers: tuple[str, ...] = ()  # the machine's own
    overlay: "OverlaySettings | None" = None
    policies: bool = True  # False: the pods' network is not ours, and policies are its affair
    stub_domains: tuple[StubDomain, ...] = ()  # names in them have name servers of their own
    written: "WrittenRules | None" = None  # all of them, a moment ago
    health: tuple[str, int] | None = None  # where the proxy says whether it works


class NodeNetwork:
    def __init__(
        self,
        settings: NodeNetworkSettings,
        clock: Clock,
        interfaces: "PodInterfaces | None" = None,
    ) -> None:
        self._settings, self._clock, self._interfaces = settings, clock, interfaces
        self._tasks = Tasks("network")
        self._informers: Informers | None = None
        self._dns: ClusterDns | None = None
        self._enforcer: PolicyEnforcer | None = None
        self._doors: ProxyHealthz | None = None

    async def start(self, client: Client, publisher: Client | None, metrics: Metrics) -> None:
        """Returns when every Service that there is can be reached, by address and by name.

        `publisher` may say in the API where the name server is; None: somebody else does.
        """
        from sampan.network.services.proxy import ProxySettings, ServiceProxy

        settings = self._settings
        informers = self._informers = Informers(client, clock=self._clock)
        informers.start()
        here: dict[str, list[Obj]] = {}
        if settings.dns_addresses:
            here = await self._start_dns(informers, publisher, metrics)
        proxy = ServiceProxy(
            ProxySettings(
                settings.place, settings.node_name, settings.place.families, here, settings.written
            ),
            informers,
            self._clock,
            metrics,
        )
        if settings.policies:
            self._enforcer = self._policies(informers, metrics)
            proxy.call_when_restored(self._enforcer.reload)
        if self._interfaces is not None:
            proxy.call_when_restored(self._interfaces.restore_soon)
        self._tasks.supervise("service proxy", proxy.run)
        if settings.health is not None:
            await self._serve_health(proxy, metrics, settings.health)
        if settings.overlay is not None:
            from sampan.network.overlay.overlay import Overlay

            overlay = Overlay(settings.overlay, informers, self._clock)
            proxy.call_when_restored(overlay.reload)
            self._tasks.supervise("pod routes", overlay.run)
        await proxy.ready.wait()
        if self._enforcer is not None:
            # After the proxy: the chains of policies ask a set of its table.
            self._tasks.supervise("network policies", self._enforcer.run)
            await self._enforcer.ready.wait()

    async def _serve_health(
        self, proxy: "ServiceProxy", metrics: Metrics, place: tuple[str, int]
    ) -> None:
        """Load balancers ask there. Of several clusters on one machine the first has the port."""
        self._doors = ProxyHealthz(proxy, metrics, self._clock)
        try:
            await self._doors.open(place, None)
        except CannotStart as error:
            log.info("the proxy's health port is taken", port=place[1], error=error)

    def _policies(self, informers: Informers, metrics: Metrics) -> "PolicyEnforcer":
        from sampan.network.policies.enforcer import EnforcerSettings, PolicyEnforcer

        place = self._settings.place
        servers = tuple(address for address, _ in self._dns.endpoints) if self._dns else ()
        settings = EnforcerSettings(
            place.table, self._settings.node_name, place.families, servers, self._settings.written
        )
        return PolicyEnforcer(settings, informers, self._clock, metrics)

    async def admit(self, namespace: str, name: str, addresses: tuple[str, ...]) -> None:
        """A pod's sandbox has these addresses: returns when its policies are in force. Raises
        RuntimeFailure where they are not: a pod that starts is isolated."""
        if self._enforcer is None:
            return
        if not await self._enforcer.admit(namespace, name, addresses):
            raise RuntimeFailure("the network policies of the pod are not in force yet")

    async def stop(self) -> None:
        """The rules stay: connections go on while sampan is restarted; `sampan reset` ends them."""
        await self._tasks.stop()
        if self._doors is not None:
            await self._doors.close()
        if self._dns is not None:
            await self._dns.stop()
        if self._informers is not None:
            await self._informers.stop()

    async def _start_dns(
        self, informers: Informers, publisher: Client | None, metrics: Metrics
    ) -> dict[str, list[Obj]]:
        """What this node answers itself."""
        from sampan.network.dns import publish
        from sampan.network.dns.forward import ForwardSettings
        from sampan.network.dns.listeners import PORT
        from sampan.network.dns.server import ClusterDns, DnsSettings

        settings = self._settings
        servers = tuple((server, PORT) for server in settings.name_servers)
        chosen = DnsSettings(
            settings.place.gateways, settings.cluster_domain, settings.dns_addresses,
            ForwardSettings(servers, dict(settings.stub_domains)),
        )  # fmt: skip
        dns = ClusterDns(chosen, informers, self._clock, metrics, random.Random())
        try:
            await dns.start()
        except OSError as error:
            log.warning("no name server for pods", address=settings.place.gateways, error=error)
            return {}
        self._dns = dns
        pieces = [publish.endpoint_slice(settings.node_name, each) for each in dns.endpoints]
        if publisher is not None:
            # Where the address is taken it waits: the cluster is there all the same.
            self._tasks.supervise(
                "kube-dns",
                lambda: publish.publish(publisher, settings.dns_addresses, pieces, self._clock),
            )
        return {f"{publish.NAMESPACE}/{publish.NAME}": pieces}


async def claimed_pod_cidrs(client: Client, node: Obj, clock: Clock) -> tuple[str, ...]:
    """The ranges of the node's pods, as its Node says; the Node is made where it is missing, so
    that the cluster can give it some. None where it gives none in time."""
    deadline = clock.monotonic() + POD_CIDR_SECONDS
    while True:
        try:
            found = await client.get(NODES, "", name_of(node))
        except NotFound:
            try:
                found = await client.create(NODES, node)
            except ApiError as error:
                log.warning("node not registered yet", error=error)
                found = {}
        except ApiError as error:
            log.warning("podCIDR of the node not known yet", error=error)
            found = {}
        cidrs = tuple((found.get("spec") or {}).get("podCIDRs") or ())
        if cidrs or clock.monotonic() > deadline:
            return cidrs
        await clock.sleep(POD_CIDR_LOOK_SECONDS)


def bare_node(name: str, choices: NodeChoices, pod_cidrs: Sequence[str] = ()) -> Obj:
    """A Node before its agent has said anything: with what holds for new ones only."""
    labels = {"kubernetes.io/hostname": name, **choices.labels}
    spec: Obj = {"podCIDR": pod_cidrs[0], "podCIDRs": list(pod_cidrs)} if pod_cidrs else {}
    if choices.taints:
        spec["taints"] = [dict(taint) for taint in choices.taints]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": spec}  # fmt: skip
