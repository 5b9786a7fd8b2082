"""etcd's gRPC interface: one call per method, on whichever endpoint answers.

Job: deadlines, failover to the next endpoint, and gRPC's codes as errors of the store.
Invariant: a call that may have changed something is never sent twice.
Invariant: nothing but a StoreError (or cancellation) comes out.
Owner: EtcdStore; the only module that knows gRPC besides the container runtime's.

Importing this module costs some 80 ms (gRPC and the messages): only a store in etcd does.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

# gRPC reads this while it is imported. With its fork handlers it would write to standard error
# each time that a child process is started.
os.putenv("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import grpc.aio

from sampan.core.backoff import Backoff
from sampan.store.contract import Compacted, FutureRevision, StoreError, Unavailable
from sampan.store.etcd_gen import sampan_etcd_pb2 as pb
from sampan.store.etcd_url import EtcdAddress

Message = Any  # the generated classes carry no types

ATTEMPT_SECONDS = 5.0  # for one endpoint to answer a read, before the next one is asked
REQUEST_SECONDS = 10.0  # for any call as a whole
BETWEEN_ROUNDS = Backoff(first_seconds=0.05, cap_seconds=1.0)

_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A peer that vanished without a word is found out within 15 seconds. etcd allows pings every
    # five seconds at most.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Each store has connections of its own: closing one must not disturb another.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)
_RESPONSES = {
    "KV/Range": pb.RangeResponse,
    "KV/Txn": pb.TxnResponse,
    "KV/Compact": pb.CompactionResponse,
    "Lease/LeaseGrant": pb.LeaseGrantResponse,
    "Maintenance/Status": pb.StatusResponse,
}
# These do the same twice as once: after a doubtful failure another endpoint may be asked.
_REPEATABLE = frozenset({"KV/Range", "Lease/LeaseGrant", "Maintenance/Status"})
_NOBODY = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")
# As gRPC says it: the request never left this process.
_NEVER_SENT = ("failed to connect", "connections to all backends failing", "DNS resolution failed")


class LeaseNotFound(StoreError):
    """The lease has expired."""


class HistoryGone(StoreError):
    """A watch was to start before etcd's compaction, which is at `revision`."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"etcd has compacted everything before revision {revision}")
        self.revision = revision


class EtcdClient:
    def __init__(self, address: EtcdAddress) -> None:
        self.address = address
        self._channels = [_channel(address, endpoint) for endpoint in address.endpoints]
        self._current = 0
        self._methods: dict[tuple[int, str], Callable[..., Any]] = {}

    async def call(
        self, method: str, request: Message, *, patience_seconds: float = REQUEST_SECONDS
    ) -> Message:
        """Ask the current endpoint; where it fails, the next, round and round while there is
        patience (0: each endpoint once)."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_seconds
        failures = 0
        while True:
            at = self._current
            left = deadline - loop.time() if patience_seconds else ATTEMPT_SECONDS
            seconds = min(left, ATTEMPT_SECONDS) if method in _REPEATABLE else left
            try:
                return await self._method(at, method)(request, timeout=max(seconds, 0.1))
            except grpc.aio.AioRpcError as failure:
                error = self._error(failure, at)
                if not isinstance(error, Unavailable):
                    raise error from failure
                self._leave(at)
                if method not in _REPEATABLE and not _never_sent(failure):
                    raise error from failure
                failures += 1
                wait = BETWEEN_ROUNDS.delay(failures // len(self._channels))
                over = loop.time() + wait >= deadline
                if failures >= len(self._channels) if not patience_seconds else over:
                    raise error from failure
                await asyncio.sleep(wait if failures % len(self._channels) == 0 else 0)

    async def watch(self, start_revision: int) -> "EtcdWatch":
        """Every change of every key from `start_revision` on (0: from now on)."""
        at = self._current
        call = self._channels[at].stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )(
            # Else a member that has lost the others would let us wait for ever.
            metadata=(("hasleader", "true"),)
        )
        watch = EtcdWatch(call, lambda failure: self._lost_connection(failure, at))
        await watch.open(start_revision)
        return watch

    async def close(self) -> None:
        """After the last call has ended: gRPC would cancel whoever still waits."""
        for channel in self._channels:
            await channel.close()

    def _method(self, at: int, method: str) -> Callable[..., Any]:
        found = self._methods.get((at, method))
        if found is None:
            found = self._methods[at, method] = self._channels[at].unary_unary(
                f"/etcdserverpb.{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=_RESPONSES[method].FromString,
            )
        return found

    def _leave(self, at: int) -> None:
        if self._current == at:  # somebody else may have left it already
            self._current = (at + 1) % len(self._channels)

    def _lost_connection(self, failure: grpc.aio.AioRpcError, at: int) -> StoreError:
        self._leave(at)
        return self._error(failure, at)

    def _error(self, failure: grpc.aio.AioRpcError, at: int) -> StoreError:
        """The only place that knows etcd's and gRPC's words."""
        code, details = failure.code().name, failure.details() or ""
        if "revision has been compacted" in details:
            return Compacted(0, 0)
        if "future revision" in details:
            return FutureRevision("the revision has not been written yet")
        if "lease not found" in details:
            return LeaseNotFound(details)
        if code in _NOBODY:
            return Unavailable(f"etcd at {self.address.endpoints[at]} does not answer: {details}")
        return StoreError(f"etcd refused: {details or code}")


class EtcdWatch:
    """One stream with one watch on it."""

    def __init__(self, call: Any, lost: Callable[[grpc.aio.AioRpcError], StoreError]) -> None:
        self._call, self._lost_connection = call, lost

    async def open(self, start_revision: int) -> None:
        everything = pb.WatchCreateRequest(
            key=b"\0", range_end=b"\0", start_revision=start_revision, fragment=True
        )
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._call.write(pb.WatchRequest(create_request=everything))
                await self._read()
        except TimeoutError as error:
            self.close()
            raise Unavailable("etcd does not open the watch") from error
        except grpc.aio.AioRpcError as failure:
            raise self._lost_connection(failure) from failure

    async def events(self) -> list[Message]:
        """The next events, never none; all changes of a revision come together. Raises
        HistoryGone, or Unavailable when the connection is lost."""
        events: list[Message] = []
        try:
            while True:
                response = await self._read()
                events.extend(response.events)
                if events and not response.fragment:
                    return events
        except grpc.aio.AioRpcError as failure:
            raise self._lost_connection(failure) from failure

    async def _read(self) -> Message:
        response = await self._call.read()
        if response is grpc.aio.EOF:
            raise Unavailable("etcd ended the watch")
        if response.canceled:
            if response.compact_revision:
                raise HistoryGone(response.compact_revision)
            raise Unavailable(f"etcd cancelled the watch: {response.cancel_reason}")
        return response

    def close(self) -> None:
        self._call.cancel()


def _never_sent(failure: grpc.aio.AioRpcError) -> bool:
    details = failure.details() or ""
    return failure.code().name == "UNAVAILABLE" and any(text in details for text in _NEVER_SENT)


def _channel(address: EtcdAddress, endpoint: str) -> grpc.aio.Channel:
    if address.tls is None:
        return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
    tls = address.tls
    credentials = grpc.ssl_channel_credentials(tls.authorities, tls.key, tls.certificate)
    return grpc.aio.secure_channel(endpoint, credentials, options=_OPTIONS)
