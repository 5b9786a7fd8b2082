"""The pod network beyond this machine: routes to other nodes' pods, kept as nodes come and go.

Job: hear of Nodes, ask the plan, tell the kernel.
Invariant: what was routed is recorded in the data directory before it is, so that `tear_down` finds
    it, also after SIGKILL.
Owner: one per node; the only one who writes these routes and the tunnel's interface.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.resources import NODES
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.network import netlink
from sampan.network.overlay.routes import (
    Mode,
    Neighbourhood,
    PodRoute,
    changes,
    hardware_address,
    internal_addresses,
    pod_cidrs,
    pod_mtu,
    pod_routes,
    tunnel_address,
)

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

    @property
    def tunnel(self) -> str:
        """The interface of the tunnel."""
        return f"{self.bridge}-vx"


class Overlay:
    def __init__(self, settings: OverlaySettings, informers: Informers, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._nodes = informers.of(NODES)
        self._routes = recorded(Path(settings.data_dir))
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled. The routes stay, as the pods may."""
        self._nodes.on_change(self._node_changed)
        await self._nodes.synced()
        while True:
            self._wake.clear()
            try:
                self._sync()
            except OSError as error:
                log.warning("a route to another node's pods cannot be set", error=error)
                await self._clock.sleep(RETRY_SECONDS)
                continue
            await self._wake.wait()

    def _node_changed(self, old: Obj | None, new: Obj | None) -> None:
        """Nodes say every few seconds that they are well: that changes no route."""
        if old is None or new is None or _facts(old) != _facts(new):
            self._wake.set()

    def _sync(self) -> None:
        settings = self._settings
        near = Neighbourhood(tuple(netlink.own_networks()))
        nodes = list(self._nodes.cache.all())
        own = (settings.node_name, settings.addresses)
        wanted = pod_routes(nodes, own, near, settings.mode)
        gone, fresh = changes(self._routes, wanted)
        if not gone and not fresh:
            return
        record(Path(settings.data_dir), {**self._routes, **wanted}.values())
        if any(route.tunnel for route in fresh):
            self._ensure_tunnel()
        for route in gone:
            netlink.delete_route(route.cidr)
        for route in fresh:
            self._set(route)
        record(Path(settings.data_dir), wanted.values())
        self._routes = wanted
        log.info("routes to other nodes' pods changed", nodes=len(wanted))

    def _set(self, route: PodRoute) -> None:
        if not route.tunnel:
            netlink.set_route(route.cidr, route.node)
            return
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


def tear_down(data_dir: Path, bridge: str) -> None:
    """Every route that was ever recorded and not taken back, and the tunnel."""
    for route in recorded(data_dir).values():
        netlink.delete_route(route.cidr)
    netlink.delete_link(f"{bridge}-vx")
    _file(data_dir).unlink(missing_ok=True)


def record(data_dir: Path, routes: Iterable[PodRoute]) -> None:
    fresh = _file(data_dir).with_suffix(".new")
    fresh.write_text(json.dumps([asdict(route) for route in routes]))
    fresh.replace(_file(data_dir))


def recorded(data_dir: Path) -> dict[str, PodRoute]:
    try:
        found = [PodRoute(**each) for each in json.loads(_file(data_dir).read_text())]
    except (FileNotFoundError, ValueError, TypeError):
        return {}
    return {route.cidr: route for route in found}


def _file(data_dir: Path) -> Path:
    return data_dir / "pod-routes.json"


def _facts(node: Obj) -> tuple[object, ...]:
    return (
        internal_addresses(node),
        pod_cidrs(node),
        bool(node["metadata"].get("deletionTimestamp")),
    )
