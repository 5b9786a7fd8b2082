"""OTLP over gRPC: how a batch of spans reaches a collector, as upstream sends it.

Job: one call, with a deadline, and why it failed.
Invariant: without TLS, as upstream; no proxy of the environment is asked.

Importing this module costs some 80 ms: only who exports so does.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

# gRPC reads this while it is imported. With its fork handlers it would write to standard error
# each time that a child process is started.
os.putenv("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import grpc.aio

from sampan.core.telemetry.otlp_wire import encode

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_OPTIONS = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))


class GrpcSender:
    def __init__(self, target: str, timeout_seconds: float) -> None:
        """`target`: as gRPC names them: host:port, dns:, unix:, unix-abstract:."""
        self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        self._export: Callable[..., Awaitable[bytes]] = self._channel.unary_unary(METHOD)
        self._timeout_seconds = timeout_seconds

    async def send(self, request: Any) -> str:
        """Why it was not taken; empty: it was."""
        try:
            await self._export(encode(request), timeout=self._timeout_seconds)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details() or 'no reason given'}"
        return ""

    async def close(self) -> None:
        await self._channel.close(None)
