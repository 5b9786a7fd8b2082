"""Traces from every API server of a cluster: each knows what it was told itself.

Job: ask the server of the kubeconfig and those behind the Service kubernetes, as the same user; put
    together what they know.
Invariant: a server that does not answer takes nothing away but its own share, and is told of.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj
from sampan.api.resources import ENDPOINTS
from sampan.api.rules.journey import journey_document
from sampan.client import rest
from sampan.client.kubeconfig import Connection
from sampan.core.clock import Clock
from sampan.core.tasks import all_of
from sampan.core.telemetry.trace_context import trace_id_of

PEER_SECONDS = 3.0


class TraceSources:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection, self._clock = connection, clock
        self.client = rest.connect(connection, clock=clock)
        self._peers: list[rest.RestClient] | None = None
        self.silent = 0  # servers that did not answer

    async def fetch(self, path: str) -> Obj:
        """What all servers have there, put together. Raises ApiError."""
        documents: list[Obj] = []
        missing: NotFound | None = None
        try:
            documents.append(await self.client.get_path(path))
        except NotFound as error:
            missing = error
        found = await all_of(self._ask(peer, path) for peer in await self._known_peers())
        documents += [document for document in found if document is not None]
        if not documents:
            raise missing or NotFound(path)
        return merged(documents)

    async def close(self) -> None:
        for client in (self.client, *(self._peers or ())):
            await client.close()

    async def _ask(self, peer: rest.RestClient, path: str) -> Obj | None:
        try:
            async with asyncio.timeout(PEER_SECONDS):
                return await peer.get_path(path)
        except NotFound:
            return None
        except (ApiError, OSError, TimeoutError):
            self.silent += 1
            return None

    async def _known_peers(self) -> Sequence[rest.RestClient]:
        if self._peers is None:
            servers = await self._servers()
            self._peers = [
                rest.connect(replace(self._connection, server=server), clock=self._clock)
                for server in (servers if len(servers) > 1 else ())
            ]
        return self._peers

    async def _servers(self) -> list[str]:
        """None where the user may not know."""
        try:
            found = await self.client.get(ENDPOINTS, "default", "kubernetes")
        except ApiError:
            return []
        return [
            f"https://{_host(address['ip'])}:{port['port']}"
            for subset in found.get("subsets") or ()
            for address in subset.get("addresses") or ()
            for port in subset.get("ports") or ()
        ]


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def merged(documents: Sequence[Obj]) -> Obj:
    """The first, with what only the others know."""
    first = dict(documents[0])
    if "objects" in first:
        by_name: dict[str, list[Obj]] = {}
        for document in documents:
            for item in document.get("objects") or ():
                by_name.setdefault(item["name"], []).append(item)
        first["objects"] = [merged(items) for items in by_name.values()]
        return first
    by_uid: dict[str, list[Obj]] = {}
    for document in documents:
        for trace in document.get("traces") or ():
            by_uid.setdefault(trace["uid"], []).append(trace)
    first["traces"] = sorted(
        (_merged_trace(uid, traces) for uid, traces in by_uid.items()), key=_began, reverse=True
    )
    return first


def _merged_trace(uid: str, traces: Sequence[Obj]) -> Obj:
    if len(traces) == 1:
        return traces[0]
    spans: list[Obj] = []
    known: set[tuple[str, str, float, float]] = set()
    for trace in traces:
        places: dict[int, int] = {}  # of its spans among all
        for at, span in enumerate(trace["spans"]):
            key = (span["lane"], span["name"], span["began"], span["ended"])
            if key in known:
                continue  # the same server, by another address
            known.add(key)
            places[at] = len(spans)
            spans.append({**span, "parent": places.get(span["parent"], -1)})
    own = trace_id_of(uid)
    begun = next((item["traceId"] for item in traces if item["traceId"] != own), own)
    dropped = max(trace["dropped"] for trace in traces)
    whole: Obj = {"uid": uid, "traceId": begun, "spans": spans, "dropped": dropped}
    return {**whole, "journey": journey_document(whole)}


def _began(trace: Obj) -> float:
    began: float = min((span["began"] for span in trace["spans"]), default=0.0)
    return began
