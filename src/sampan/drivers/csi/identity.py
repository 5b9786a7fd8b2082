"""The identity service of csi.sampan.dev.

Job: say who it is, what it can, and that it is here.
"""

from typing import Any

from google.protobuf.wrappers_pb2 import BoolValue

from sampan.core.grpc.socket_server import Methods, Unary
from sampan.drivers.csi.settings import DriverSettings
from sampan.plugins.csi import IDENTITY
from sampan.plugins.gen import sampan_csi_pb2 as csi
from sampan.version import VERSION

Message = Any
_SERVICE, _EXPANSION = csi.PluginCapability.Service, csi.PluginCapability.VolumeExpansion


class Identity:
    def __init__(self, settings: DriverSettings) -> None:
        self._settings = settings

    def methods(self) -> Methods:
        handlers = {
            "GetPluginInfo": self.info,
            "GetPluginCapabilities": self.capabilities,
            "Probe": self.probe,
        }
        return {
            f"/{IDENTITY}/{name}": Unary(getattr(csi, f"{name}Request"), handle)
            for name, handle in handlers.items()
        }

    async def info(self, _request: Message) -> Message:
        return csi.GetPluginInfoResponse(name=self._settings.name, vendor_version=VERSION)

    async def capabilities(self, _request: Message) -> Message:
        services = (_SERVICE.CONTROLLER_SERVICE, _SERVICE.VOLUME_ACCESSIBILITY_CONSTRAINTS)
        online = _EXPANSION(type=_EXPANSION.ONLINE)
        return csi.GetPluginCapabilitiesResponse(
            capabilities=[
                *(csi.PluginCapability(service=_SERVICE(type=item)) for item in services),
                csi.PluginCapability(volume_expansion=online),
            ]
        )

    async def probe(self, _request: Message) -> Message:
        return csi.ProbeResponse(ready=BoolValue(value=True))
