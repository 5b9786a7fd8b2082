"""The pod network beyond this machine: routes to other nodes' pods, kept as nodes come and go.

Job: hear of Nodes, ask the plan, tell the kernel.
Invariant: what was routed is recorded in the data directory before it is, so that `tear_down` finds
    it, also after SIGKILL.
Invariant: the tunnel is guarded (tunnel_guard.py) before it is there.
Invariant: a route that cannot be set keeps no other from being set; one that somebody takes away,
    or that goes with a link, is set again.
Owner: one per node; the only one who writes these routes and the tunnel's interface.
"""

import asyncio
import ipaddress
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from sampan.api.objects import Obj, name_of
from sampan.api.resources import NODES
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, json_list
from sampan.core.log import get_logger
from sampan.network import netlink
from sampan.network.nftables import nft
from sampan.network.nftables.nft import NftError
from sampan.network.overlay import tunnel_guard
from sampan.network.overlay.route_watch import RouteWatch
from sampan.network.overlay.routes import (
    Mode,
    Neighbourhood,
    PodRoute,
    changes,
    hardware_address,
    internal_addresses,
    lost_routes,
    pod_cidrs,
    pod_mtu,
    pod_routes,
    tunnel_address,
)
from sampan.network.overlay.tunnel_guard import TunnelEnds

RETRY_SECONDS = 2.0
ETHERNET_MTU = 1500
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OverlaySettings:
    node_name: str
    addresses: tuple[str, ...]  # of this node, one of each family
    subnets: tuple[str, ...]  # of its pods
    bridge: str
    data_dir: str
    mode: Mode = "auto"
    uplink_mtu: int = 0  # of the machine's own interface; 0: not known
    table: str = ""  # of nftables; empty: the tunnel is not guarded

    @property
    def tunnel(self) -> str:
        """The interface of the tunnel."""
        return f"{self.bridge}-vx"


class Overlay:
    def __init__(self, settings: OverlaySettings, informers: Informers, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._nodes = informers.of(NODES)
        self._routes = recorded(Path(settings.data_dir))
        self._was_near = False  # this machine was on a network with others
        self._guarded: TunnelEnds | None = None  # whom the rules know
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled. The routes stay, as the pods may."""
        self._nodes.on_change(self._node_changed)
        await self._nodes.synced()
        watch = RouteWatch(self._wake.set)
        try:
            while True:
                self._wake.clear()
                if not await self._sync():
                    await self._clock.sleep(RETRY_SECONDS)
                    continue
                await self._wake.wait()
        finally:
            watch.close()

    def reload(self) -> None:
        """The table was lost and is there again, without the tunnel's rules."""
        self._guarded = None
        self._wake.set()

    def _node_changed(self, old: Obj | None, new: Obj | None) -> None:
        """Nodes say every few seconds that they are well: that changes no route."""
        if old is None or new is None or _facts(old) != _facts(new):
            self._wake.set()

    async def _sync(self) -> bool:
        """False where it must be tried again: a route could not be set, or was somebody's to take
        away, who may do so again."""
        near = Neighbourhood(tuple(netlink.own_networks()))
        if not self._is_connected(near):
            return True  # nothing can be reached; when the link is up there is news
        settings = self._settings
        own = (settings.node_name, settings.addresses)
        wanted = pod_routes(list(self._nodes.cache.all()), own, near, settings.mode)
        if any(route.tunnel for route in wanted.values()) and not await self._guard(wanted):
            return False
        gone, fresh = changes(self._routes, wanted)
        lost = lost_routes(self._routes, wanted, netlink.gateway_routes())
        if not (gone or fresh or lost):
            return True
        record(Path(settings.data_dir), {**self._routes, **wanted}.values())
        failed = [route for route in gone if not _attempt(_delete, route)]
        failed += [route for route in (*fresh, *lost) if not _attempt(self._set, route)]
        self._routes = wanted
        record(Path(settings.data_dir), wanted.values())
        log.info("routes to other nodes' pods changed", nodes=len(wanted), lost=len(lost))
        return not (failed or lost)

    async def _guard(self, wanted: Mapping[str, PodRoute]) -> bool:
        """The rules know the tunnel's other ends."""
        settings = self._settings
        others = [node for node in self._nodes.cache.all() if name_of(node) != settings.node_name]
        addresses = {each for node in others for each in internal_addresses(node)}
        ends = TunnelEnds(
            settings.addresses,
            settings.subnets,
            frozenset(addresses.difference(settings.addresses)),
            frozenset(wanted),
        )
        if ends == self._guarded or not settings.table:
            return True
        try:
            for family in ends.families:
                rules = tunnel_guard.script(family, settings.table, settings.tunnel, ends)
                await asyncio.to_thread(nft.write, family, settings.table, rules)
        except NftError as error:
            log.warning("rules of the tunnel not applied, trying again", error=error)
            return False
        self._guarded = ends
        return True

    def _is_connected(self, near: Neighbourhood) -> bool:
        """False while the link that others were reached by is down. Some machines have none."""
        here = any(near.has(address) for address in self._settings.addresses)
        self._was_near = self._was_near or here
        return here or not self._was_near

    def _set(self, route: PodRoute) -> None:
        if not route.tunnel:
            netlink.set_route(route.cidr, route.node)
            return
        self._ensure_tunnel()
        there = tunnel_address(route.cidr)
        hardware = hardware_address(route.node)
        netlink.set_neighbour(self._settings.tunnel, there, hardware)
        netlink.set_tunnel_end(self._settings.tunnel, hardware, route.node)
        netlink.set_route(route.cidr, there, self._settings.tunnel)

    def _ensure_tunnel(self) -> None:
        settings = self._settings
        address = settings.addresses[0]
        mtu = pod_mtu(settings.uplink_mtu or ETHERNET_MTU, "vxlan", address)
        netlink.ensure_vxlan(settings.tunnel, address, hardware_address(address), mtu)
        for subnet in settings.subnets:
            bits = 128 if ":" in subnet else 32
            netlink.set_address(settings.tunnel, tunnel_address(subnet), bits)


def _attempt(do: Callable[[PodRoute], None], route: PodRoute) -> bool:
    try:
        do(route)
    except OSError as error:
        log.warning("a route to another node's pods cannot be changed",
                    cidr=route.cidr, node=route.node, error=error)  # fmt: skip
        return False
    return True


def _delete(route: PodRoute) -> None:
    netlink.delete_route(route.cidr)


def tear_down(data_dir: Path, bridge: str) -> None:
    """Every route that was ever recorded and not taken back, and the tunnel."""
    for route in recorded(data_dir).values():
        _delete(route)
    netlink.delete_link(f"{bridge}-vx")
    _file(data_dir).unlink(missing_ok=True)


def record(data_dir: Path, routes: Iterable[PodRoute]) -> None:
    fresh = _file(data_dir).with_suffix(".new")
    fresh.write_text(json.dumps([asdict(route) for route in routes]))
    fresh.replace(_file(data_dir))


def recorded(data_dir: Path) -> dict[str, PodRoute]:
    file, found = _file(data_dir), {}
    if not file.exists():
        return {}
    try:
        for each in json_list(file):
            route = PodRoute(**each)
            ipaddress.ip_network(route.cidr), ipaddress.ip_address(route.node)
            found[route.cidr] = route
    except (Damaged, ValueError, TypeError, KeyError) as error:
        log.warning("record of routes to other nodes' pods unreadable", error=error)
    return found


def _file(data_dir: Path) -> Path:
    return data_dir / "pod-routes.json"


def _facts(node: Obj) -> tuple[object, ...]:
    return (
        internal_addresses(node),
        pod_cidrs(node),
        bool(node["metadata"].get("deletionTimestamp")),
    )
