"""Ports of Services and pods on the machine, where pods have a network of their own without root.

Job: whoever comes to the machine at a node port, a load balancer's port or a host port is led to
    the node's own address inside, where the network's rules take over.
Invariant: a port that somebody else has on the machine, or that only root may use, is named in the
    log once, and left.
Owner: the node of `sampan up`; TCP and UDP.
"""

import asyncio
import contextlib
import functools
import socket
from collections.abc import Iterable, Iterator

from sampan.api.objects import Obj
from sampan.api.resources import PODS, SERVICES
from sampan.api.rules.pods import is_terminal
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.cmd.rootless.outside import Outside
from sampan.cmd.rootless.published_datagrams import PublishedDatagrams
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks, all_of

CHUNK_BYTES = 1 << 16
_PROTOCOLS = ("TCP", "UDP")
log = get_logger(__name__)


Port = tuple[str, int]  # ("TCP", 30080)


def wanted_ports(services: Iterable[Obj], pods: Iterable[Obj]) -> set[Port]:
    found = {port for service in services for port in _ports_of_service(service)}
    return found | {port for pod in pods for port in _host_ports(pod)}


def _ports_of_service(service: Obj) -> Iterator[Port]:
    kind = service["spec"].get("type")
    if kind not in ("NodePort", "LoadBalancer"):
        return
    for port in service["spec"].get("ports") or ():
        protocol = port.get("protocol", "TCP")
        if protocol in _PROTOCOLS:
            if port.get("nodePort"):
                yield protocol, port["nodePort"]
            if kind == "LoadBalancer":
                yield protocol, port["port"]


def _host_ports(pod: Obj) -> Iterator[Port]:
    """Also those of the node's own network: its address inside is not the machine's."""
    if is_terminal(pod):
        return
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            protocol = port.get("protocol", "TCP")
            if port.get("hostPort") and protocol in _PROTOCOLS:
                yield protocol, port["hostPort"]


class PublishedPorts:
    def __init__(
        self, outside: Outside, outside_address: str, node_address: str, clock: Clock
    ) -> None:
        self._outside, self._outside_address = outside, outside_address
        self._node_address, self._clock = node_address, clock
        self._servers: dict[Port, asyncio.Server | PublishedDatagrams] = {}
        self._refused: set[Port] = set()
        self._changed = asyncio.Event()
        self._tasks = Tasks("published ports")

    async def run(self, client: Client, node_name: str) -> None:
        """Until cancelled."""
        informers = Informers(client, clock=self._clock)
        services = informers.of(SERVICES)
        pods = informers.of(PODS, field_selector=f"spec.nodeName={node_name}")
        for informer in (services, pods):
            informer.on_change(lambda *_: self._changed.set())
        informers.start()
        try:
            await services.synced()
            await pods.synced()
            while True:
                await self._follow(wanted_ports(services.cache.all(), pods.cache.all()))
                await self._changed.wait()
                self._changed.clear()
        finally:
            await self._tasks.stop()
            for server in self._servers.values():
                server.close()
            await informers.stop()

    async def _follow(self, wanted: set[Port]) -> None:
        self._refused &= wanted
        for unwanted in self._servers.keys() - wanted:
            self._servers.pop(unwanted).close()
        for protocol, port in wanted - self._servers.keys() - self._refused:
            try:
                listening = self._outside.bound_socket(
                    self._outside_address, port, protocol.lower()
                )
            except OSError as error:
                self._refused.add((protocol, port))
                log.warning("port not published on the machine", port=port, error=error)
                continue
            self._servers[protocol, port] = await self._server(protocol, port, listening)

    async def _server(
        self, protocol: str, port: int, listening: socket.socket
    ) -> asyncio.Server | PublishedDatagrams:
        if protocol == "UDP":
            return PublishedDatagrams(listening, (self._node_address, port), self._clock)
        return await asyncio.start_server(functools.partial(self._come, port), sock=listening)

    def _come(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start("connection", self._lead(port, reader, writer))

    async def _lead(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            inner_reader, inner_writer = await asyncio.open_connection(self._node_address, port)
            try:
                await all_of([_copy(reader, inner_writer), _copy(inner_reader, writer)])
            finally:
                inner_writer.close()
        writer.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK_BYTES):
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
