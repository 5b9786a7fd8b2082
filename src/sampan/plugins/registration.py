"""Plugin registration v1: what a plugin's registration socket is asked and told.

Job: GetInfo and NotifyRegistrationStatus at one socket, and the other side for plugins of our own.
"""

from collections.abc import Awaitable, Callable

from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.socket_client import SocketClient
from sampan.core.grpc.socket_server import Methods, Unary
from sampan.plugins.gen import sampan_registration_pb2 as messages

SERVICE = "/pluginregistration.Registration"
# As upstream.
DIAL_SECONDS, NOTIFY_SECONDS = 10.0, 5.0

CSI_PLUGIN = "CSIPlugin"


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a plugin says of itself."""

    type: str
    name: str
    endpoint: str  # empty: the registration socket itself
    versions: tuple[str, ...]


class RegistrationClient:
    def __init__(self, socket_path: str) -> None:
        self._socket = SocketClient(socket_path)

    async def info(self) -> Introduction:
        """Raises GrpcFailure."""
        found = await self._socket.call(
            f"{SERVICE}/GetInfo",
            messages.InfoRequest(),
            messages.PluginInfo,
            seconds=DIAL_SECONDS,
            waits=True,
        )
        versions = tuple(found.supported_versions)
        return Introduction(found.type, found.name, found.endpoint, versions)

    async def notify(self, error: str = "") -> None:
        """It is registered; or it is not, and why. Raises GrpcFailure."""
        status = messages.RegistrationStatus(plugin_registered=not error, error=error)
        await self._socket.call(
            f"{SERVICE}/NotifyRegistrationStatus",
            status,
            messages.RegistrationStatusResponse,
            seconds=NOTIFY_SECONDS,
        )

    async def close(self) -> None:
        await self._socket.close()


def registration_methods(
    introduction: Introduction, told: Callable[[bool, str], Awaitable[None]]
) -> Methods:
    """A plugin's side. `told`: whether the kubelet took it, and why not."""

    async def info(_request: messages.InfoRequest) -> messages.PluginInfo:
        return messages.PluginInfo(
            type=introduction.type,
            name=introduction.name,
            endpoint=introduction.endpoint,
            supported_versions=introduction.versions,
        )

    async def notified(
        status: messages.RegistrationStatus,
    ) -> messages.RegistrationStatusResponse:
        await told(status.plugin_registered, status.error)
        return messages.RegistrationStatusResponse()

    return {
        f"{SERVICE}/GetInfo": Unary(messages.InfoRequest, info),
        f"{SERVICE}/NotifyRegistrationStatus": Unary(messages.RegistrationStatus, notified),
    }
