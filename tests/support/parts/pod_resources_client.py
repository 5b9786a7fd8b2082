"""A client of the PodResources API, as a monitor of devices on the node has one."""

from sampan.core.grpc.socket_client import SocketClient
from sampan.plugins.gen import sampan_pod_resources_pb2 as messages
from sampan.plugins.pod_resources import V1, Message

CALL_SECONDS = 10.0


class PodResourcesClient:
    def __init__(self, path: str) -> None:
        self._socket = SocketClient(path)

    async def pods(self) -> list[Message]:
        """Raises GrpcFailure, as the others do."""
        request = messages.ListPodResourcesRequest()
        answer = await self._call("List", request, messages.ListPodResourcesResponse)
        return list(answer.pod_resources)

    async def pod(self, namespace: str, name: str) -> Message:
        request = messages.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace)
        answer = await self._call("Get", request, messages.GetPodResourcesResponse)
        return answer.pod_resources

    async def allocatable(self) -> Message:
        request = messages.AllocatableResourcesRequest()
        kind = messages.AllocatableResourcesResponse
        return await self._call("GetAllocatableResources", request, kind)

    async def close(self) -> None:
        await self._socket.close()

    async def _call(self, method: str, request: Message, answer: Message) -> Message:
        return await self._socket.call(
            f"{V1}/{method}", request, answer, seconds=CALL_SECONDS, waits=True
        )
