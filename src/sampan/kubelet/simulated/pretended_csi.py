"""A CSI driver that only pretends: the protocol's answers, in this process.

Job: answer what the kubelet and the sidecars ask a driver; volumes are names and sizes; fail, or
    take time, as the annotations of its CSIDriver say.
Invariant: what was made is made once, by its name; what is not there is deleted already.

Under `simulated.sampan.dev/`, on the CSIDriver, METHOD as in CSI, or METHOD@NODE for one node:
    fail      `METHOD:TIMES:MESSAGE`, several with `;`; without TIMES always
    seconds   `METHOD:SECONDS`, several with `;`
"""

from collections.abc import Callable, Mapping
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import annotations_of
from sampan.api.resources import CSI_DRIVERS
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.kubelet.simulated.pretence import PretendedDriver
from sampan.kubelet.simulated.script import Script
from sampan.kubelet.simulated.scripted_failures import ScriptedFailures
from sampan.plugins.csi import CALL_SECONDS, CsiSocket, messages

Message = Any
_PLUGIN, _CONTROLLER = messages.PluginCapability.Service, messages.ControllerServiceCapability.RPC
_NODE = messages.NodeServiceCapability.RPC


class DriverFaults:
    """As often as one is to fail it does, whoever asks."""

    def __init__(self, client: Client, driver: str, node: str, clock: Clock) -> None:
        self._client, self._driver, self._node, self._clock = client, driver, node, clock
        self._failures = ScriptedFailures()

    async def before(self, method: str) -> None:
        """Raises GrpcFailure."""
        try:
            found = await self._client.get(CSI_DRIVERS, "", self._driver)
        except ApiError:
            return  # nobody says anything
        script = Script(annotations_of(found))
        names = (f"{method}@{self._node}", method)
        seconds = [_seconds(script.text("seconds"), name) for name in names]
        if any(seconds):
            await self._clock.sleep(max(seconds))
        for name in names:
            why = self._failures.next(name, self._driver, script)
            if why is not None:
                raise GrpcFailure(why, code="INTERNAL", method=method)


def _seconds(text: str, wanted: str) -> float:
    for entry in text.split(";"):
        name, _, seconds = entry.strip().partition(":")
        if name == wanted:
            try:
                return max(0.0, float(seconds))
            except ValueError:
                return 0.0
    return 0.0


class PretendedCsi(CsiSocket):
    def __init__(self, driver: PretendedDriver, node: str, faults: DriverFaults) -> None:
        """No socket is opened. `node`: as the driver calls it."""
        self._driver, self._node, self._faults = driver, node, faults
        self._made: dict[str, tuple[int, Mapping[str, str]]] = {}  # by handle: bytes, and where
        self._answers: dict[str, Callable[[Message], Message]] = {
            "GetPluginInfo": self._info,
            "GetPluginCapabilities": self._services,
            "ControllerGetCapabilities": self._abilities,
            "CreateVolume": self._create,
            "DeleteVolume": self._delete,
            "ControllerExpandVolume": self._expand,
            "GetCapacity": self._capacity,
            "NodeGetInfo": self._node_info,
            "NodeGetCapabilities": self._node_abilities,
        }

    async def close(self) -> None:
        """Nothing is open."""

    async def _call(
        self, service: str, method: str, request: Message, seconds: float = CALL_SECONDS
    ) -> Message:
        await self._faults.before(method)
        answer = self._answers.get(method)
        return getattr(messages, f"{method}Response")() if answer is None else answer(request)

    def _info(self, _request: Message) -> Message:
        return messages.GetPluginInfoResponse(name=self._driver.name, vendor_version="pretended")

    def _services(self, _request: Message) -> Message:
        answer = messages.GetPluginCapabilitiesResponse()
        kinds = [_PLUGIN.CONTROLLER_SERVICE]
        if self._driver.topology:
            kinds.append(_PLUGIN.VOLUME_ACCESSIBILITY_CONSTRAINTS)
        for kind in kinds:
            answer.capabilities.add().service.type = kind
        return answer

    def _abilities(self, _request: Message) -> Message:
        answer = messages.ControllerGetCapabilitiesResponse()
        kinds = [_CONTROLLER.CREATE_DELETE_VOLUME, _CONTROLLER.EXPAND_VOLUME]
        if self._driver.attaches:
            kinds.append(_CONTROLLER.PUBLISH_UNPUBLISH_VOLUME)
        if self._driver.capacity_bytes is not None:
            kinds.append(_CONTROLLER.GET_CAPACITY)
        for kind in kinds:
            answer.capabilities.add().rpc.type = kind
        return answer

    def _create(self, request: Message) -> Message:
        handle, size = f"{self._driver.name}/{request.name}", request.capacity_range.required_bytes
        if handle not in self._made:
            wanted = request.accessibility_requirements
            places = [*wanted.preferred, *wanted.requisite]
            where = dict(places[0].segments) if places else dict(self._driver.topology)
            if (room := self._room(where)) is not None and room < size:
                why = f"no room for {size} bytes: {room} are left"
                raise GrpcFailure(why, code="RESOURCE_EXHAUSTED")
            self._made[handle] = (size, where)
        answer, (has, place) = messages.CreateVolumeResponse(), self._made[handle]
        answer.volume.volume_id, answer.volume.capacity_bytes = handle, has
        if self._driver.topology:
            answer.volume.accessible_topology.add(segments=place)
        return answer

    def _room(self, where: Mapping[str, str]) -> int | None:
        if self._driver.capacity_bytes is None:
            return None
        taken = sum(size for size, place in self._made.values() if place == where)
        return max(0, self._driver.capacity_bytes - taken)

    def _delete(self, request: Message) -> Message:
        self._made.pop(request.volume_id, None)
        return messages.DeleteVolumeResponse()

    def _expand(self, request: Message) -> Message:
        size = request.capacity_range.required_bytes
        where = self._made.get(request.volume_id, (0, {}))[1]
        self._made[request.volume_id] = (size, where)
        return messages.ControllerExpandVolumeResponse(capacity_bytes=size)

    def _capacity(self, request: Message) -> Message:
        room = self._room(dict(request.accessible_topology.segments))
        return messages.GetCapacityResponse(available_capacity=room or 0)

    def _node_info(self, _request: Message) -> Message:
        answer = messages.NodeGetInfoResponse(
            node_id=self._node, max_volumes_per_node=self._driver.most_volumes
        )
        answer.accessible_topology.segments.update(self._driver.topology)
        return answer

    def _node_abilities(self, _request: Message) -> Message:
        answer = messages.NodeGetCapabilitiesResponse()
        # Its group is the driver's affair: there is no directory that anybody could give away.
        for kind in (_NODE.STAGE_UNSTAGE_VOLUME, _NODE.VOLUME_MOUNT_GROUP):
            answer.capabilities.add().rpc.type = kind
        return answer
