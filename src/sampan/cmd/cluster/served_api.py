"""The API server of a process: its store, its listeners, and what keeps both in order.

Job: a store's URL, settings, sockets → an ApiServer that answers on them; all of it stopped.
Invariant: nobody is answered before the server has read its store, nor after it has let it go.
Owner: `sampan up` and `sampan apiserver`.
"""

import errno
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Protocol

from sampan.api.errors import ServiceUnavailable
from sampan.api.objects import Obj
from sampan.api.schema.published import Schema
from sampan.apiserver.admission.plugins import UnknownPlugin
from sampan.apiserver.authn.tokens import SignerFailure
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.watch.watch_cache import LoadProgress
from sampan.client.inprocess import Backend
from sampan.cmd.errors import CannotStart
from sampan.core.clock import Clock
from sampan.core.http.messages import Handler, Limits, WantsBody
from sampan.core.http.server import Server, bound_socket
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.telemetry.loop_watch import LoopWatch
from sampan.store.compaction import keep_compacted
from sampan.store.contract import Store, StoreError
from sampan.store.open import open_store

if TYPE_CHECKING:
    from sampan.kubelet.node.leases_on_demand import LeasesOnDemand

HTTP_GRACE_SECONDS = 2.0
MEMORY_PATH = "/sampan/v1/memory"  # what it is used for, by process and part
LESSON_PATH = "/sampan/v1/lesson"  # the steps of `sampan tour`, for pages that guide through them
DIAGNOSIS_PATH = "/sampan/v1/diagnosis"  # what `sampan why` finds in the objects that are sent


async def _lesson(rest: str) -> Obj | None:
    from sampan.cmd.tour.lesson import lesson_object  # nobody waits for it with a start

    return lesson_object(rest)


async def _diagnosis(asked: Obj) -> Obj:
    """Of what the caller has read himself: nobody learns here what he may not see."""
    from sampan.cmd.diagnosis.sent_objects import findings_in  # nobody waits for it with a start

    return findings_in(asked)


class Surroundings(Protocol):
    """Of an API server whose clients, or whose time, are in somebody's hand."""

    @property
    def limits(self) -> Limits: ...

    def offer(self, server: ApiServer, store: Store) -> None:
        """Called once, before the first request."""

    def around(self, handler: Handler) -> Handler:
        """What requests meet instead of the handler."""

    def renew_on_demand(self, leases: "LeasesOnDemand") -> None:
        """From now on nodes' leases are renewed when somebody reads them."""

    def between(self, user: str, backend: Backend) -> Backend:
        """What a part of this process that acts as `user` meets instead of the server."""

    def let_go(self) -> None:
        """The end has come: nothing is held up any more."""


class ServedApi:
    def __init__(
        self,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._clock, self._metrics, self._rng = clock, metrics, rng
        self._surroundings = surroundings
        self._tasks = Tasks("api server")
        self._undo = AsyncExitStack()
        self._server: ApiServer | None = None
        self._weighed: dict[str, Callable[[], Awaitable[Obj | None]]] = {}
        self.handler: Handler | None = None  # of requests, once it serves

    def export_traces(self, config_file: str) -> None:
        """Where one is named. Raises CannotStart."""
        if not config_file:
            return
        # Few export, and nobody else waits for it.
        from sampan.cmd.flags.tracing import export_settings_in
        from sampan.core.telemetry.export import Exporter

        exporter = Exporter(export_settings_in(config_file), self._metrics, self._clock)
        self._tasks.supervise("export of traces", exporter.run)

    async def open(self, url: str) -> Store:
        """Raises CannotStart."""
        try:
            store = await open_store(url, self._clock)
        except StoreError as error:
            raise CannotStart(str(error)) from error
        self._undo.push_async_callback(store.close)
        return store

    def also_weigh(self, name: str, ask: Callable[[], Awaitable[Obj | None]]) -> None:
        """Another process of this cluster: it says itself what its memory is used for."""
        self._weighed[name] = ask

    async def _memory(self, rest: str) -> Obj | None:
        if rest:
            return None
        found = {"apiserver" if self._weighed else "sampan": await self._metrics.memory.document()}
        for name, ask in self._weighed.items():
            with suppress(ServiceUnavailable):  # it is being started again
                found[name] = await ask() or {}
        return {"processes": found}

    async def serve(
        self,
        store: Store,
        settings: ApiServerSettings,
        sockets: Sequence[socket.socket],
        tls: ssl.SSLContext,
        progress: LoadProgress | None = None,
    ) -> ApiServer:
        """`progress` hears how much of the store was read. Raises CannotStart."""
        try:
            server = ApiServer(
                store, Schema.load(), settings, self._clock, self._metrics, self._rng
            )
        except UnknownPlugin as error:
            raise CannotStart(str(error)) from error
        server.add_document(LESSON_PATH, _lesson)
        server.add_document(MEMORY_PATH, self._memory)
        server.add_action(DIAGNOSIS_PATH, _diagnosis)
        try:
            await server.start(progress)
        except (StoreError, SignerFailure) as error:  # what it holds cannot be read
            raise CannotStart(str(error)) from error
        self._server = server
        self._undo.push_async_callback(server.stop)
        watch = LoopWatch(self._metrics)
        watch.start()
        self._undo.callback(watch.stop)
        handler: Handler = watch.around(server.handle_http)
        self.handler = handler
        limits = Limits()
        if self._surroundings is not None:
            self._surroundings.offer(server, store)
            handler, limits = self._surroundings.around(handler), self._surroundings.limits
        for listening in sockets:
            http = Server(
                handler, ssl_context=tls, limits=limits, wants_body=server.wants_body,
                knows_callers=True,
            )  # fmt: skip
            await http.start_on(listening)
            self._undo.push_async_callback(http.stop, HTTP_GRACE_SECONDS)
        self._tasks.supervise("compaction", lambda: keep_compacted(store, self._clock))
        self._tasks.supervise("service repair", server.keep_repaired)
        return server

    async def listen_locally(
        self, listening: socket.socket, handler: Handler, wants_body: WantsBody
    ) -> None:
        """For the parts of this cluster that are other processes; after `serve`."""
        http = Server(handler, wants_body=wants_body, name="local")
        await http.start_on(listening)
        self._undo.push_async_callback(http.stop, HTTP_GRACE_SECONDS)

    def wind_down(self) -> None:
        """readyz fails from now on; requests are still answered."""
        if self._server is not None:
            self._server.wind_down()

    async def stop(self) -> None:
        self.wind_down()
        await self._tasks.stop()
        await self._undo.aclose()


def listening_socket(address: str, port: int, flag: str) -> socket.socket:
    """Raises CannotStart; `flag` is what the port is chosen with."""
    try:
        return bound_socket(address, port)
    except OSError as error:
        raise CannotStart(why_not_bound(address, port, flag, error)) from error


def why_not_bound(address: str, port: int, flag: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {address} is in use: choose another with {flag}, "
            f"or {flag} 0 for any that is free"
        )
    advice = "give an address of this machine with --bind-address"
    return f"cannot listen on {address} port {port} ({error.strerror}): {advice}"
