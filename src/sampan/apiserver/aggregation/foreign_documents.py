"""Discovery and OpenAPI documents of aggregated servers.

Job: ask a server that answers for its documents, and keep them for those that merge them.
Invariant: only a server that proved its service's name is believed.
Invariant: nothing is kept of a server that cannot be asked.
Owner: of `versions` and `openapi`; `generation` and `openapi_generation` grow with their changes.
"""

import asyncio
import hashlib
from urllib.parse import parse_qs, urlsplit

import orjson

from sampan.api.objects import Obj
from sampan.apiserver.aggregation.asking import LIST_BYTES, OPENAPI_BYTES, TooLarge, ask
from sampan.apiserver.aggregation.foreign_resources import Unreadable, discovered_resources
from sampan.apiserver.aggregation.servers import AggregatedServer, AggregatedServers, GroupVersion
from sampan.apiserver.outside.webhook_client import CallFailed
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.errors import HttpError
from sampan.core.http.failure_words import failure_words
from sampan.core.http.origin import Target
from sampan.core.log import get_logger

log = get_logger(__name__)

Resources = list[Obj]  # entries of an APIGroupDiscovery


@dataclass(frozen=True, slots=True)
class ForeignOpenApi:
    """Of one group version."""

    v3_hash: str = ""  # empty: the server has no such document
    v2: bytes = b""  # as it came: of all that the server serves

    @property
    def digest(self) -> str:
        return hashlib.sha512(self.v3_hash.encode() + self.v2).hexdigest()


class ForeignDocuments:
    def __init__(self, servers: AggregatedServers) -> None:
        self._servers = servers
        self.versions: dict[GroupVersion, Resources] = {}
        self.openapi: dict[str, ForeignOpenApi] = {}  # by "apis/GROUP/VERSION"
        self.generation = self.openapi_generation = 0

    def forget(self, server: AggregatedServer) -> None:
        if self.versions.pop((server.group, server.version), None) is not None:
            self.generation += 1
        if self.openapi.pop(server.path[1:], None) is not None:
            self.openapi_generation += 1

    def forget_others(self) -> None:
        """Whatever belongs to no server that there is now."""
        known = self._servers.by_version
        self.versions = {key: found for key, found in self.versions.items() if key in known}
        names = {server.path[1:] for server in known.values()}
        gone = set(self.openapi) - names
        for name in gone:
            del self.openapi[name]
        self.generation += 1
        self.openapi_generation += len(gone)

    async def learn_resources(self, server: AggregatedServer) -> bool:
        """Whether they are others than before."""
        key = (server.group, server.version)
        try:
            body = await self._ask(server, server.path)
            found = await asyncio.to_thread(
                discovered_resources, body, server.group, server.version
            )
        except (HttpError, CallFailed, Unreadable) as error:
            why = failure_words(error) if isinstance(error, HttpError) else error
            log.warning("discovery of an aggregated server not read", name=server.name, error=why)
            self.forget(server)
            return True
        if key not in self._servers.by_version:
            return False  # it went meanwhile
        before = self.versions.get(key)
        self.versions[key] = found
        if found != before:
            self.generation += 1
        return found != before

    async def learn_openapi(self, server: AggregatedServer, anew: bool) -> bool:
        """Whether it is known now; where the server does not answer, what was known stays.
        `anew`: even the large document, where nothing says that it is another one."""
        name = server.path[1:]
        before = self.openapi.get(name)
        try:
            v3_hash = _hash_in(await self._document(server, "/openapi/v3"), name)
            if before is not None and before.v3_hash == v3_hash and not anew:
                return True
            v2 = await self._document(server, "/openapi/v2", OPENAPI_BYTES)
        except HttpError as error:
            why = failure_words(error)
            log.warning("OpenAPI of an aggregated server not read", name=server.name, error=why)
            return False
        found = ForeignOpenApi(v3_hash, v2)
        if found != before and (server.group, server.version) in self._servers.by_version:
            self.openapi[name] = found
            self.openapi_generation += 1
        return True

    async def _document(
        self, server: AggregatedServer, path: str, most_bytes: int = LIST_BYTES
    ) -> bytes:
        """Empty where the server has none, or one that nobody wants. Raises HttpError."""
        try:
            return await self._ask(server, path, most_bytes)
        except (CallFailed, TooLarge):
            return b""

    async def _ask(
        self, server: AggregatedServer, path: str, most_bytes: int = LIST_BYTES
    ) -> bytes:
        """Raises HttpError, CallFailed."""
        if server.http is None:
            raise CallFailed(server.trouble)
        url = Target(self._servers.origin(server), path)
        status, body = await ask(server.http, url, most_bytes)
        if status != 200:
            raise CallFailed(f"the server answered with {status}")
        return body


def _hash_in(index: bytes, name: str) -> str:
    """What the index of version 3 says of one document; of its own making where that is nothing."""
    try:
        url = str(orjson.loads(index)["paths"][name]["serverRelativeURL"])
        return parse_qs(urlsplit(url).query).get("hash", [hashlib.sha512(index).hexdigest()])[0]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
