"""The gRPC probe: grpc.health.v1.Health/Check, the only module here that needs the library.

Job: ask one server once; say what it said in upstream's words.
"""

import asyncio

import grpc
import grpc.aio

from sampan.api.rules.durations import seconds_text
from sampan.core.grpc.status_codes import status_text
from sampan.core.protobuf_wire import bytes_field
from sampan.kubelet.probes.finding import Finding

METHOD = "/grpc.health.v1.Health/Check"
SERVING = 1
NAMES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


async def health(host: str, port: int, service: str, timeout_seconds: float) -> Finding:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    limit = seconds_text(timeout_seconds)
    options = [("grpc.primary_user_agent", "kube-probe"), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        ask = channel.unary_unary(
            METHOD, request_serializer=_request, response_deserializer=_status
        )
        try:
            async with asyncio.timeout(timeout_seconds):
                await channel.channel_ready()
                status = await ask(service)
        except TimeoutError:
            if channel.get_state() is grpc.ChannelConnectivity.READY:
                return Finding(False, f"timeout: health rpc did not complete within {limit}")
            why = f'timeout: failed to connect service "{address}" within {limit}'
            return Finding(False, f"{why}: context deadline exceeded")
        except grpc.aio.AioRpcError as error:
            return Finding(False, _error_text(error))
    if status == SERVING:
        return Finding(True, "service healthy")
    return Finding(False, f'service unhealthy (responded with "{NAMES.get(status, status)}")')


def _error_text(error: grpc.aio.AioRpcError) -> str:
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        name = "grpc.health.v1.Health"
        said = f"this server does not implement the grpc health protocol ({name})"
        return f"error: {said}: {error.details()}"
    text = status_text(error.code().name, error.details() or "")
    return f"error: health rpc probe failed: {text}"


def _request(service: str) -> bytes:
    """HealthCheckRequest: the service's name is field 1."""
    return bytes_field(1, service.encode()) if service else b""


def _status(answer: bytes) -> int:
    """HealthCheckResponse: an enum in field 1; absent is 0. Unknown fields come after it."""
    return answer[1] if answer[:1] == b"\x08" and len(answer) > 1 else 0
