"""DRA drivers that are registered at this node, and what they published when they are gone.

Job: take and let go drivers, say whom to call, delete the ResourceSlices of those that are away.
Invariant: while a driver is updated, two of its sockets may be registered: the newest that answers
    is called.
Invariant: slices of a driver that is away are gone half a minute later: nobody is sent here for
    devices that nobody can prepare.
Owner: PluginManager registers; DraManager calls.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sampan.api.errors import ApiError, Conflict, NotFound
from sampan.api.objects import name_of, uid_of
from sampan.api.resources import RESOURCE_SLICES
from sampan.client.contract import Client, Preconditions
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.paths import own_path
from sampan.kubelet.plugin_manager.plugin_manager import PluginRefused
from sampan.kubelet.plugin_manager.plugin_state import Plugin

if TYPE_CHECKING:
    from sampan.plugins.dra import DraClient

log = get_logger(__name__)

# In the kubelet's order of preference, as upstream lists them.
VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
WIPING_SECONDS = 30.0
WIPE_RETRY = Backoff(first_seconds=1.0, cap_seconds=300.0)
_PROTOCOL = "sampan.plugins.dra"


# Of a driver, by its name, and how to begin to listen to it.
FollowHealth = Callable[[str, Callable[[], AsyncIterator[Any]]], Coroutine[Any, Any, None]]


class DriverMissing(Exception):
    """In upstream's words."""


@dataclass(slots=True)
class _Endpoint:
    path: str
    client: "DraClient"
    connected: bool = False
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)


class DraDrivers:
    def __init__(
        self, client: Client, node_name: str, root_dir: str, *, tasks: Tasks, clock: Clock
    ) -> None:
        self._client, self._node_name, self._root = client, node_name, root_dir
        self._tasks, self._clock = tasks, clock
        self._endpoints: dict[str, list[_Endpoint]] = {}  # by driver, oldest first
        self._wipes: dict[str, asyncio.Task[None]] = {}
        self.changed: Callable[[str], None] = lambda _driver: None
        # What is said of a driver's devices, where somebody wants to know.
        self.follow_health: FollowHealth | None = None

    def names(self) -> list[str]:
        """Once for each socket that it registered."""
        return sorted(name for name, there in self._endpoints.items() for _ in there)

    def caller(self, driver: str) -> "DraClient":
        """Raises DriverMissing."""
        there = self._endpoints.get(driver)
        if not there:
            raise DriverMissing(f"DRA driver {driver} is not registered")
        connected = [endpoint for endpoint in there if endpoint.connected]
        return (connected or there)[-1].client

    # Registration.

    def validate(self, plugin: Plugin) -> None:
        _chosen(plugin)

    async def register(self, plugin: Plugin) -> None:
        version, path = _chosen(plugin), own_path(plugin.endpoint, self._root)
        there = self._endpoints.setdefault(plugin.name, [])
        if any(endpoint.path == path for endpoint in there):
            raise PluginRefused(
                f"endpoint {plugin.endpoint} already registered for DRA driver plugin {plugin.name}"
            )
        protocol = await asyncio.to_thread(import_module, _PROTOCOL)
        endpoint = _Endpoint(path, protocol.DraClient(path, version))
        there.append(endpoint)
        follow = self._follow(plugin.name, endpoint)
        endpoint.tasks.append(self._tasks.start(f"driver {plugin.name}", follow))
        if self.follow_health is not None:
            watching = self.follow_health(plugin.name, endpoint.client.watch_health)
            endpoint.tasks.append(self._tasks.start(f"health {plugin.name}", watching))
        log.info("DRA driver registered", driver=plugin.name, version=version)
        self.changed(plugin.name)

    async def deregister(self, plugin: Plugin) -> None:
        path = own_path(plugin.endpoint, self._root)
        there = self._endpoints.get(plugin.name, [])
        gone = [endpoint for endpoint in there if endpoint.path == path]
        kept = [endpoint for endpoint in there if endpoint.path != path]
        if kept:
            self._endpoints[plugin.name] = kept
        else:
            self._endpoints.pop(plugin.name, None)
        for endpoint in gone:
            await self._hang_up(endpoint)
        self._keep_slices(plugin.name)

    async def _hang_up(self, endpoint: _Endpoint) -> None:
        for task in endpoint.tasks:
            task.cancel()
        await endpoint.client.close()

    async def _follow(self, driver: str, endpoint: _Endpoint) -> None:
        async for connected in endpoint.client.connections():
            if connected == endpoint.connected:
                continue
            endpoint.connected = connected
            self._keep_slices(driver)
            if connected:
                self.changed(driver)

    async def close(self) -> None:
        for there in self._endpoints.values():
            for endpoint in there:
                await self._hang_up(endpoint)

    # ResourceSlices.

    async def wipe_at_start(self) -> None:
        """As upstream: whoever is still here publishes again; whoever is not has left nothing."""
        await self._wipe("")

    def _keep_slices(self, driver: str) -> None:
        """Until the driver has been away for a while."""
        usable = any(endpoint.connected for endpoint in self._endpoints.get(driver, ()))
        waiting = self._wipes.get(driver)
        if usable and waiting is not None:
            del self._wipes[driver]
            waiting.cancel()
        elif not usable and waiting is None:
            wiping = self._wipe_later(driver)
            self._wipes[driver] = self._tasks.start(f"slices of {driver}", wiping)

    async def _wipe_later(self, driver: str) -> None:
        await self._clock.sleep(WIPING_SECONDS)
        await self._wipe(driver)
        self._wipes.pop(driver, None)

    async def _wipe(self, driver: str) -> None:
        """`driver`: empty: all of this node."""
        selector = f"spec.nodeName={self._node_name}" + (f",spec.driver={driver}" if driver else "")
        failures = 0
        while True:
            try:
                for item in (
                    await self._client.list(RESOURCE_SLICES, field_selector=selector)
                ).items:
                    with contextlib.suppress(NotFound, Conflict):  # another one came in its place
                        await self._client.delete(
                            RESOURCE_SLICES, "", name_of(item),
                            preconditions=Preconditions(uid_of(item)),
                        )  # fmt: skip
                return
            except NotFound:
                return  # this API has none
            except ApiError as error:
                failures += 1
                log.debug(
                    "ResourceSlices were not deleted, trying again", selector=selector, error=error
                )
                await self._clock.sleep(WIPE_RETRY.delay(failures))


def _chosen(plugin: Plugin) -> str:
    """The first of its versions that the kubelet speaks. Raises PluginRefused."""
    where = f"invalid supported gRPC versions of DRA driver plugin {plugin.name} at endpoint "
    if not plugin.versions:
        why = "empty list of supported gRPC services (aka supported versions)"
        raise PluginRefused(f"{where}{plugin.endpoint}: {why}")
    for version in plugin.versions:
        if version in VERSIONS:
            return version
    theirs, ours = (" ".join(f'"{name}"' for name in names) for names in
                    (plugin.versions, VERSIONS))  # fmt: skip
    why = (
        f"none of services supported by the plugin ([{theirs}]) are supported by the kubelet "
        f"([{ours}])"
    )
    raise PluginRefused(f"{where}{plugin.endpoint}: {why}")
