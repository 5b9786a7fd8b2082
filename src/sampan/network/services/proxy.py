"""The service proxy of a node: Services and EndpointSlices become nftables elements.

Job: hear of changes, ask the plans, hand the difference to the table.
Invariant: changes that come together are applied together, in one transaction.
Invariant: an earlier proxy's rules stay in force until every Service is known again.
Invariant: what is much to work out is worked out beside the loop, of what was known before.
Invariant: rules that somebody else deletes or changes are written again at once; who does it again
    and again waits.
Owner: one per node; the only writer of its table.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from ipaddress import ip_network

from sampan.api.objects import Obj, key_of, labels_of
from sampan.api.resources import ENDPOINT_SLICES, NODES, SERVICE_CIDRS, SERVICES
from sampan.api.rules.endpoint_slices import ready_endpoints, services_of_slice
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import finish
from sampan.network.nftables import conntrack
from sampan.network.nftables.desired_elements import Change, DesiredElements, net_changes
from sampan.network.nftables.elements import Elements
from sampan.network.nftables.nft import NftError
from sampan.network.nftables.queries import WrittenRules
from sampan.network.nftables.table_watch import TableWatch, Tampering
from sampan.network.services.elements_of_service import (
    elements_of_service,
    frontend_of,
    served_by_udp,
)
from sampan.network.services.endpoints import NodeView
from sampan.network.services.health_checks import Check, HealthChecks, check_of
from sampan.network.services.node_listeners import NodeListeners
from sampan.network.services.ruleset import ProxyPlace
from sampan.network.services.stale_conntrack import (
    Served,
    StaleEndpoints,
    stale_affinity,
    stale_clients,
    stale_udp,
)
from sampan.network.services.table import ServiceTable

ZONE = "topology.kubernetes.io/zone"
RETRY_SECONDS = 1.0
LISTENERS_SECONDS = 5.0  # between two looks at what listens on the node
LISTENERS = "listeners of the node"  # whose elements they are; no Service is called so
# Whoever changes our rules again and again may have us write them for a quarter of the time.
RESTORE_PAUSE, LEAST_PAUSE_SECONDS = 3.0, 0.1
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProxySettings:
    place: ProxyPlace
    node_name: str = ""
    families: tuple[str, ...] = ("ip",)
    # Services that this node answers itself, as NodeLocal DNSCache does: key → slices.
    answered_here: Mapping[str, Sequence[Obj]] = field(default_factory=dict)
    written: WrittenRules | None = None  # with those of the table, by who set the network up


class _Family:
    """What belongs to one family of addresses."""

    def __init__(self, family: str, place: ProxyPlace) -> None:
        self.name = family
        self.table = ServiceTable(family, place)
        self.desired = DesiredElements(group_of=frontend_of)
        self.synced = False
        self.udp: dict[str, Served] = {}  # of each Service, as it was last applied


class ServiceProxy:
    def __init__(
        self, settings: ProxySettings, informers: Informers, clock: Clock, metrics: Metrics
    ) -> None:
        self._settings, self._clock = settings, clock
        self._services = informers.of(SERVICES)
        self._slices = informers.of(ENDPOINT_SLICES, indices={"proxied": services_of_slice})
        self._node = informers.of(NODES, field_selector=f"metadata.name={settings.node_name}")
        self._ranges = informers.of(SERVICE_CIDRS)
        self._families: list[_Family] = []
        self._written = settings.written  # for the first time
        self._dirty: set[str] = set()
        self._zone = ""
        self._tampering: Tampering | None = None  # somebody else was at the table
        self._next_restoration = 0.0
        self._on_restored: list[Callable[[], None]] = []
        self._pod_ranges = tuple(map(ip_network, settings.place.cluster_cidrs))
        self._listeners = NodeListeners(clock)
        self._health = HealthChecks(settings.families)
        self._checked: dict[str, tuple[Check, int]] = {}
        self._wake = asyncio.Event()
        self.healthy = False  # what was to be applied last, was
        self.last_applied = 0.0
        self.ready = asyncio.Event()  # every Service that there was at the start has its rules
        self._took = metrics.histogram(
            "kubeproxy_sync_proxy_rules_duration_seconds",
            "Seconds from the first waiting change to rules that follow it.",
        )
        self._failures = metrics.counter(
            "kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
            "Times that nftables refused a change.",
        )

    async def run(self) -> None:
        """Until cancelled."""
        self._services.on_change(self._service_changed)
        self._slices.on_change(self._slice_changed)
        self._node.on_change(self._node_changed)
        self._ranges.on_change(self._range_changed)
        for informer in (self._services, self._slices, self._node):
            await informer.synced()
        await self._ranges.answered()  # servers before v1.33 have none
        watch = TableWatch(self._settings.place.table, self._tampered)
        try:
            while True:
                await self._sync()
                await self._news()
        finally:
            watch.close()
            self._close()
            await self._health.close()

    async def _news(self) -> None:
        """Of the cluster, or of what listens on the node."""
        while not self._wake.is_set():
            try:
                async with asyncio.timeout(LISTENERS_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                if await self._listeners_changed():
                    return

    async def _listeners_changed(self) -> bool:
        try:
            return await finish(asyncio.to_thread(self._listeners.look))
        except OSError as error:
            log.warning("listening sockets unreadable", error=error)
            return False

    def call_when_restored(self, on_restored: Callable[[], None]) -> None:
        """When the table was lost and is there again: others have rules in it, too."""
        self._on_restored.append(on_restored)

    def _tampered(self, how: Tampering) -> None:
        if how is Tampering.CERTAIN:
            log.warning("Service rules were changed by another program, syncing them again",
                        table=self._settings.place.table)  # fmt: skip
        if self._tampering is not Tampering.CERTAIN:
            self._tampering = how
        self._wake.set()

    def _service_changed(self, old: Obj | None, new: Obj | None) -> None:
        self._touch(key_of(new or old or {}))

    def _slice_changed(self, old: Obj | None, new: Obj | None) -> None:
        for obj in (old, new):
            for service in services_of_slice(obj) if obj else ():
                self._touch(service)

    def _node_changed(self, _old: Obj | None, new: Obj | None) -> None:
        zone = labels_of(new).get(ZONE, "") if new else ""
        if zone != self._zone:
            self._zone = zone
            self._dirty.update(key_of(service) for service in self._services.cache.all())
            self._wake.set()

    def _range_changed(self, _old: Obj | None, _new: Obj | None) -> None:
        self._wake.set()

    def _touch(self, service: str) -> None:
        self._dirty.add(service)
        self._wake.set()

    async def _sync(self) -> None:
        started = self._clock.now()
        self._wake.clear()
        dirty, self._dirty = self._dirty, set()
        tampering, self._tampering = self._tampering, None
        if tampering:
            await self._clock.sleep(max(0.0, self._next_restoration - started))
            started = self._clock.now()
            await finish(asyncio.to_thread(self._close))
        try:
            if not self._families:
                await asyncio.to_thread(self._open, tampering)
                dirty = {key_of(service) for service in self._services.cache.all()}
            ranges = self._service_cidrs()
            await self._listeners_changed()
            for family in self._families:
                await self._sync_family(family, dirty, ranges)
            await self._keep_health_checks(dirty)
        except (OSError, NftError) as error:
            self._failures.add()
            self.healthy = False
            log.warning("Service rules not applied, trying again", error=error)
            # The table is not as we believe: everything is read and compared anew.
            await finish(asyncio.to_thread(self._close))
            await self._clock.sleep(RETRY_SECONDS)
            self._tampering = self._tampering or tampering
            self._wake.set()
            return
        took = self._clock.now() - started
        if tampering:
            pause = max(LEAST_PAUSE_SECONDS, RESTORE_PAUSE * took)
            self._next_restoration = self._clock.now() + pause
            for on_restored in self._on_restored:
                on_restored()
        self._took.observe(took)
        self.healthy, self.last_applied = True, self._clock.now()
        self.ready.set()

    def _open(self, tampering: Tampering | None) -> None:
        opened = [_Family(name, self._settings.place) for name in self._settings.families]
        written, self._written = self._written, None
        try:
            for family in opened:
                if tampering is Tampering.CERTAIN:
                    family.table.replace()
                elif written is None or not written.are_the_last():
                    family.table.load()
                family.desired = DesiredElements(family.table.present(), frontend_of)
        except (OSError, NftError):
            for family in opened:
                family.table.close()
            raise
        self._families = opened

    def _close(self) -> None:
        for family in self._families:
            family.table.close()
        self._families = []

    def _service_cidrs(self) -> tuple[str, ...]:
        """Those that the node was told of, and what ServiceCIDRs add."""
        added = {cidr for found in self._ranges.cache.all() for cidr in found["spec"]["cidrs"]}
        known = self._settings.place.service_cidrs
        return (*known, *sorted(added.difference(known)))

    async def _sync_family(
        self, family: _Family, dirty: Iterable[str], ranges: tuple[str, ...]
    ) -> None:
        node = NodeView(self._settings.node_name, self._zone, self._pod_ranges)
        known = {key: self._known(key) for key in sorted(dirty, key=self._age)}
        listening = self._listeners.elements(family.name)

        def work() -> None:
            _apply(family, node, listening, known)
            family.table.refuse_rest(ranges)

        # A Service that goes takes as many elements with it as it brought, and the kernel may be
        # busy with another's rules for seconds.
        await finish(asyncio.to_thread(work))

    def _age(self, key: str) -> tuple[str, str]:
        """The oldest first: of Services that name the same address, it has it after a restart,
        too."""
        found = self._services.cache.get(key)
        return (found["metadata"].get("creationTimestamp") or "" if found else "", key)

    async def _keep_health_checks(self, dirty: Iterable[str]) -> None:
        before = dict(self._checked)
        for key in dirty:
            service = self._services.cache.get(key)
            check = check_of(service) if service is not None else None
            if check is None:
                self._checked.pop(key, None)
            else:
                self._checked[key] = (check, self._local_endpoints(key))
        if before != self._checked:
            await self._health.keep(self._checked)

    def _local_endpoints(self, key: str) -> int:
        """Different addresses that are ready here, of the family that has most of them."""
        ready: dict[str, set[tuple[str, ...]]] = {}
        for piece in self._slices.cache.by("proxied", key):
            for entry in ready_endpoints(piece):
                if entry.get("nodeName") == self._settings.node_name:
                    of_family = ready.setdefault(piece.get("addressType") or "", set())
                    of_family.add(tuple(entry.get("addresses") or ()))
        return max(map(len, ready.values()), default=0)

    def _known(self, key: str) -> "_Known":
        service = self._services.cache.get(key)
        return _Known(service, () if service is None else self._slices_of(key, service))

    def _slices_of(self, key: str, service: Obj) -> Sequence[Obj]:
        here = self._settings.answered_here.get(key)
        if here is not None and not service["spec"].get("selector"):
            return here
        return self._slices.cache.by("proxied", key)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a change found of a Service; None: it is gone."""

    service: Obj | None
    slices: Sequence[Obj]

    def elements(self, family: str, node: NodeView) -> Elements:
        if self.service is None:
            return {}
        return elements_of_service(self.service, self.slices, family, node)

    def by_udp(self, family: str, node: NodeView) -> Served:
        if self.service is None:
            return {}
        return served_by_udp(self.service, self.slices, family, node)


def _apply(
    family: _Family, node: NodeView, listening: Elements, services: Mapping[str, _Known]
) -> None:
    """Raises OSError, NftError."""
    changes: list[Change] = []
    udp: list[StaleEndpoints] = []
    affinity: list[StaleEndpoints] = []
    changes += family.desired.put(LISTENERS, listening)
    for key, known in services.items():
        before = family.desired.elements_of(key)
        changes += family.desired.put(key, known.elements(family.name, node))
        udp += _stale_udp(family, key, known.by_udp(family.name, node))
        affinity += stale_affinity(before, family.desired.elements_of(key))
    if not family.synced:
        changes += family.desired.adopted()
        family.synced = True
    family.table.apply(net_changes(changes))
    _forget(family, udp, affinity)


def _stale_udp(family: _Family, key: str, after: Served) -> list[StaleEndpoints]:
    before = family.udp.pop(key, {})
    if after:
        family.udp[key] = after
    return stale_udp(before, after)


def _forget(
    family: _Family, udp: Sequence[StaleEndpoints], affinity: Sequence[StaleEndpoints]
) -> None:
    if affinity:
        family.table.forget_affinities(stale_clients(affinity, family.table.affinities()))
    for each in udp:
        count = conntrack.forget(family.name, each.service, each.endpoints)
        if count:
            log.info("connections to gone endpoints forgotten", service=each.service, count=count)
