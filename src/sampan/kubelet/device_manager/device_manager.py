"""Device manager: plugins register devices, the node offers them, containers get them.

Job: serve registration (device-plugins/kubelet.sock), follow each plugin's list, choose and
    allocate devices for containers, keep that on disk, tell the node's capacity.
Invariant: a device is offered while its plugin says that it is healthy; one that is held stays
    held, whatever becomes of its plugin.
Invariant: one allocation at a time: two pods never choose from the same devices at once.
Owner: Kubelet; ResourceAdmission asks it for containers.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.api.objects import Obj, uid_of
from sampan.api.quantity import value_of
from sampan.api.rules import pod_resources
from sampan.api.rules.nodes import is_extended_resource
from sampan.api.rules.pods import init_containers, is_sidecar
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.activated_server import ActivatedServer
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.paths import own_path
from sampan.kubelet.contracts.resources_hook import GrantFailure, Grants, unexpected
from sampan.kubelet.device_manager.device_rules import (
    NotEnough,
    PluginDevice,
    Wanted,
    chosen,
    completed,
    device_hints,
)
from sampan.kubelet.device_manager.plugin_client import PluginClient
from sampan.kubelet.device_manager.pod_devices import Allocation, PodDevices
from sampan.kubelet.plugin_manager.plugin_manager import PluginRefused
from sampan.kubelet.plugin_manager.plugin_state import Plugin
from sampan.kubelet.resource_managers.numa import Hint, Hints, Mask, NumaNodes, mask_of
from sampan.kubelet.resource_managers.state_file import write_whole

if TYPE_CHECKING:
    from sampan.core.grpc.socket_server import Methods
    from sampan.plugins.device_plugin import DevicePluginClient, Options, Registered

log = get_logger(__name__)

CHECKPOINT = "kubelet_internal_checkpoint"
VERSION = "v1beta1"
# As upstream: for so long a plugin may be away before its resource is not offered any more.
STOP_GRACE_SECONDS = 300.0
_PROTOCOL = "sampan.plugins.device_plugin"


@dataclass(slots=True)
class _Endpoint:
    """A plugin that is, or was, here."""

    client: PluginClient | None = None
    options: "Options | None" = None
    task: "asyncio.Task[None] | None" = None


class DeviceManager:
    def __init__(
        self, root_dir: str, numa: NumaNodes, *, tasks: Tasks, clock: Clock, metrics: Metrics
    ) -> None:
        self._root, self._numa, self._clock, self._tasks = root_dir, numa, clock, tasks
        self._directory = f"{root_dir}/device-plugins"
        self._path = f"{self._directory}/{CHECKPOINT}"
        self._pods, self._turn = PodDevices(self._path), asyncio.Lock()
        self._devices: dict[str, dict[str, PluginDevice]] = {}  # by resource, then by id
        self._endpoints: dict[str, _Endpoint] = {}
        self._gone: set[str] = set()  # resources that were offered once
        self._reusable: tuple[str, dict[str, set[str]]] = ("", {})  # of the pod that is admitted
        self._server = ActivatedServer(f"{self._directory}/kubelet.sock", self._methods, mode=0o660)
        self.changed: Callable[[], None] = lambda: None  # what the node offers
        self.health_changed: Callable[[str], None] = lambda _uid: None  # of a pod's devices
        self._registrations = metrics.counter(
            "kubelet_device_plugin_registration_total",
            "Cumulative number of device plugin registrations. Broken down by resource name.",
            ("resource_name",),
        )
        self._seconds = metrics.histogram(
            "kubelet_device_plugin_alloc_duration_seconds",
            "Duration in seconds to serve a device plugin Allocation request. Broken down by "
            "resource name.",
            ("resource_name",),
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )
        self._pods.read()
        for resource in self._pods.known_resources:
            self._devices[resource] = {}
            self._endpoints[resource] = _Endpoint()

    # Plugins.

    async def run(self) -> None:
        """Until cancelled: serve registrations."""
        await asyncio.to_thread(self._clean_directory)
        await self._server.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._server.stop()
            for endpoint in self._endpoints.values():
                if endpoint.client is not None:
                    await endpoint.client.close()

    def _clean_directory(self) -> None:
        """Sockets of an earlier life: plugins see that they have to register again."""
        os.makedirs(self._directory, 0o750, exist_ok=True)
        for entry in [*os.scandir(self._directory)]:
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                    os.unlink(entry.path)

    def _methods(self) -> "Methods":
        protocol = import_module(_PROTOCOL)
        methods: Methods = protocol.registration_methods(self._registered)
        return methods

    async def _registered(self, asked: "Registered") -> None:
        """Raises GrpcFailure."""
        self._registrations.add(asked.resource)
        if asked.version != VERSION:
            raise GrpcFailure(
                f'requested API version "{asked.version}" is not supported by kubelet. Supported '
                f'version is ["{VERSION}"]', code="UNKNOWN",
            )  # fmt: skip
        if not is_extended_resource(asked.resource):
            raise GrpcFailure(_bad_name(asked.resource), code="UNKNOWN")
        path = f"{self._directory}/{os.path.basename(asked.endpoint)}"
        try:
            await self._connect(asked.resource, path)
        except GrpcFailure as failure:
            why = f"failed to dial device plugin: {failure}"
            raise GrpcFailure(why, code="UNKNOWN") from failure

    def validate(self, plugin: Plugin) -> None:
        if VERSION not in plugin.versions:
            listed = f"[{' '.join(plugin.versions)}]"
            raise PluginRefused(
                f"manager version, {VERSION}, is not among plugin supported versions {listed}"
            )
        if not is_extended_resource(plugin.name):
            raise PluginRefused(f"invalid name of device plugin socket: {_bad_name(plugin.name)}")

    async def register(self, plugin: Plugin) -> None:
        try:
            await self._connect(plugin.name, own_path(plugin.endpoint, self._root))
        except GrpcFailure as failure:
            raise PluginRefused(str(failure)) from failure

    async def deregister(self, plugin: Plugin) -> None:
        await self.unplug(plugin.name)

    async def _connect(self, resource: str, path: str) -> None:
        """Raises GrpcFailure."""
        protocol = await asyncio.to_thread(import_module, _PROTOCOL)
        client: DevicePluginClient = protocol.DevicePluginClient(path)
        try:
            options = await client.options()
        except GrpcFailure:
            await client.close()
            raise
        await self.plug(resource, client, options)

    async def plug(
        self, resource: str, client: PluginClient, options: "Options | None" = None
    ) -> None:
        """The plugin of a resource is here."""
        await self.unplug(resource)
        endpoint = _Endpoint(client, options)
        self._endpoints[resource] = endpoint
        self._devices.setdefault(resource, {})
        self._gone.discard(resource)
        endpoint.task = self._tasks.start(
            f"devices {resource}", self._follow(resource, endpoint, client)
        )
        log.info("device plugin registered", resource=resource)

    async def unplug(self, resource: str) -> None:
        """Its plugin is gone."""
        endpoint = self._endpoints.get(resource)
        if endpoint is None or endpoint.client is None:
            return
        client, endpoint.client = endpoint.client, None
        if endpoint.task is not None and endpoint.task is not asyncio.current_task():
            endpoint.task.cancel()
        await client.close()
        self._tell(resource, [
            PluginDevice(device.id, False, device.numa)
            for device in self._devices.get(resource, {}).values()
        ])  # fmt: skip
        self._tasks.start(f"without {resource}", self._forget_later(resource, endpoint))

    async def _forget_later(self, resource: str, endpoint: _Endpoint) -> None:
        await self._clock.sleep(STOP_GRACE_SECONDS)
        if self._endpoints.get(resource) is endpoint and endpoint.client is None:
            del self._endpoints[resource]
            self._devices.pop(resource, None)
            self._gone.add(resource)
            await self._store()
            self.changed()

    async def _follow(self, resource: str, endpoint: _Endpoint, client: PluginClient) -> None:
        try:
            async for answer in client.watch():
                self._tell(resource, [
                    PluginDevice(
                        device.ID, device.health == "Healthy",
                        mask_of(node.ID for node in device.topology.nodes),
                    )
                    for device in answer.devices
                ])  # fmt: skip
                await self._store()
            log.warning("device plugin ended its list", resource=resource)
        except GrpcFailure as failure:
            log.warning("device plugin is gone", resource=resource, why=failure)
        if self._endpoints.get(resource) is endpoint:
            await self.unplug(resource)

    def _tell(self, resource: str, devices: "list[PluginDevice]") -> None:
        before = self._devices.get(resource, {})
        self._devices[resource] = {device.id: device for device in devices}
        self.changed()
        for device in devices:
            known = before.get(device.id)
            if known is None or known.healthy != device.healthy:
                for uid in self._pods.holders(resource, device.id):
                    self.health_changed(uid)

    # The node.

    def offered(self) -> Mapping[str, tuple[int, int]]:
        """By resource: how many there are, and how many of them are healthy."""
        found = dict.fromkeys(sorted(self._gone), (0, 0))
        for resource, devices in self._devices.items():
            healthy = sum(device.healthy for device in devices.values())
            found[resource] = (len(devices), healthy)
        return found

    def least_allocatable(self, uid: str) -> Mapping[str, int]:
        """What a pod that holds devices finds on the node, whatever its plugins say just now."""
        if uid not in self._pods.pods():
            return {}
        return {name: len(self._pods.in_use(name)) for name in self._pods.resources()}

    def health(self, uid: str, container: str) -> Mapping[str, Mapping[str, bool]]:
        """By resource and device; one that is not listed is taken for healthy, as upstream does."""
        return {
            resource: {
                device: known.healthy if known is not None else True
                for device in allocation.devices
                for known in [self._devices.get(resource, {}).get(device)]
            }
            for resource, allocation in self._pods.of(uid, container).items()
        }

    def allocated(self, uid: str, container: str) -> Mapping[str, Allocation]:
        return self._pods.of(uid, container)

    def allocatable(self) -> Mapping[str, Mapping[str, PluginDevice]]:
        return {
            resource: {name: device for name, device in devices.items() if device.healthy}
            for resource, devices in self._devices.items()
        }

    # Containers.

    def concerns(self, pod: Obj) -> bool:
        limits = pod_resources.limits(pod)
        return any(self._is_ours(name) for name in limits)

    def _is_ours(self, resource: str) -> bool:
        return resource in self._devices or resource in self._pods.resources()

    def container_hints(self, pod: Obj, container: Obj) -> Hints:
        return {
            resource: self._hints_for(self._wanted(pod, container, resource, amount, None))
            for resource, amount in self._asked(container).items()
        }

    def pod_hints(self, pod: Obj) -> Hints:
        uid = uid_of(pod)
        limits = pod_resources.limits(pod)
        found: dict[str, list[Hint] | None] = {}
        for name, amount in limits.items():
            if self._is_ours(name):
                held = self._pods.of_pod(uid, name)
                wanted = Wanted(name, amount.value(), held, in_use=self._pods.in_use(name))
                found[name] = self._hints_for(wanted)
        return found

    def _hints_for(self, wanted: Wanted) -> "list[Hint] | None":
        devices = self._devices.get(wanted.resource) or {}
        hints = device_hints(wanted, devices, self._numa)
        return None if hints is None else list(hints)

    def _asked(self, container: Obj) -> dict[str, int]:
        limits = (container.get("resources") or {}).get("limits") or {}
        return {name: value_of(amount).value() for name, amount in limits.items()
                if self._is_ours(name)}  # fmt: skip

    def _wanted(
        self, pod: Obj, container: Obj, resource: str, amount: int, affinity: Mask | None
    ) -> Wanted:
        uid = uid_of(pod)
        return Wanted(
            resource,
            amount,
            self._pods.held(uid, container["name"], resource),
            frozenset(self._reusable[1].get(resource, ())) if self._reusable[0] == uid else
            frozenset(),
            self._pods.in_use(resource),
            affinity,
        )  # fmt: skip

    async def allocate(self, pod: Obj, container: Obj, affinity: Hint) -> None:
        """Raises PodRefused."""
        uid, name = uid_of(pod), container["name"]
        if self._reusable[0] != uid:
            self._reusable = (uid, {})
        changed = False
        for resource, amount in self._asked(container).items():
            wanted = self._wanted(pod, container, resource, amount, affinity.mask)
            try:
                changed |= await self._allocate(uid, name, wanted)
            except (NotEnough, GrpcFailure, ValueError) as error:
                raise unexpected(error) from error
        self._note_reusable(pod, container)
        if changed:
            try:
                await self._stored()
            except OSError as error:
                why = f'failed to write checkpoint file "{CHECKPOINT}": {error}'
                raise unexpected(why) from error

    async def _allocate(self, uid: str, container: str, wanted: Wanted) -> bool:
        """Raises NotEnough, GrpcFailure, ValueError."""
        resource = wanted.resource
        choice = chosen(wanted, self._devices.get(resource))
        if not choice.missing and not choice.taken:
            return False
        endpoint = self._endpoints.get(resource)
        if endpoint is None or endpoint.client is None:
            raise NotEnough(f"unknown Device Plugin {resource}")
        preferred: list[str] = []
        if choice.missing and endpoint.options is not None and endpoint.options.prefers:
            try:
                preferred = await endpoint.client.preferred(
                    choice.askable, choice.taken, wanted.amount
                )
            except GrpcFailure as failure:
                raise NotEnough(
                    f"device plugin GetPreferredAllocation rpc failed with err: {failure}"
                ) from failure
        devices = completed(choice, preferred, wanted)
        began = self._clock.monotonic()
        answer = await endpoint.client.allocate(devices)
        self._seconds.observe(self._clock.monotonic() - began, resource)
        known = self._devices.get(resource, {})
        places = {device: known[device].numa if device in known else 0 for device in devices}
        self._pods.add(uid, container, resource, Allocation(places, answer))
        return True

    def _note_reusable(self, pod: Obj, container: Obj) -> None:
        """What an init container had is free for those after it; what others have is not."""
        uid, name = uid_of(pod), container["name"]
        reusable = self._reusable[1]
        ends = any(item["name"] == name and not is_sidecar(item) for item in init_containers(pod))
        for resource, allocation in self._pods.of(uid, name).items():
            if ends:
                reusable.setdefault(resource, set()).update(allocation.devices)
            else:
                reusable.get(resource, set()).difference_update(allocation.devices)

    async def grants(self, pod: Obj, container: Obj) -> Grants | None:
        """What the container is started with; None: nothing of ours. Raises GrantFailure."""
        uid, name = uid_of(pod), container["name"]
        held = self._pods.of(uid, name)
        for resource, allocation in held.items():
            endpoint = self._endpoints.get(resource)
            if endpoint is None or endpoint.options is None or not endpoint.options.pre_start:
                continue
            try:
                if endpoint.client is None:
                    raise GrantFailure(f"endpoint not found in cache for a registered resource: "
                                       f"{resource}")  # fmt: skip
                await endpoint.client.pre_start(sorted(allocation.devices))
            except GrpcFailure as failure:
                why = f"device plugin PreStartContainer rpc failed with err: {failure}"
                raise GrantFailure(why) from failure
        if not any(allocation.answer for allocation in held.values()):
            return None  # its plugins have nothing for it
        answers = await asyncio.to_thread(
            import_module, "sampan.kubelet.device_manager.allocate_answers"
        )
        found: Grants = answers.grants_of(
            [allocation.answer for allocation in held.values()], self._root
        )
        return found

    def release(self, uid: str) -> None:
        """The pod has ended."""
        if self._pods.remove(uid):
            self._tasks.start("device checkpoint", self._store())

    def keep_only(self, is_known: Callable[[str], bool]) -> None:
        """Of pods that went while the agent was away nothing is held."""
        gone = [uid for uid in self._pods.pods() if not is_known(uid)]
        for uid in gone:
            self._pods.remove(uid)
        if gone:
            self._tasks.start("device checkpoint", self._store())

    async def _store(self) -> None:
        """What the next start finds out by itself, if it must."""
        try:
            await self._stored()
        except OSError as error:
            log.warning("device checkpoint was not written", error=error)

    async def _stored(self) -> None:
        """Raises OSError."""
        async with self._turn:
            text = self._pods.written({
                resource: [device.id for device in devices.values() if device.healthy]
                for resource, devices in self._devices.items()
            })  # fmt: skip
            await asyncio.to_thread(write_whole, self._path, text)


def _bad_name(resource: str) -> str:
    return f'the ResourceName "{resource}" is invalid'
