"""The API on a unix socket: how the other processes of a cluster meet its API server, without TLS.

Job: at the server's end, secret and user name of a request → the caller that the chain acts for;
    at the other end, clients that send both.
Invariant: a request without the secret of a part that may be that user is 401, whatever else it
    shows; nothing that comes over TCP gets here.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import orjson

from sampan.api.errors import ApiError, Unauthorized
from sampan.api.objects import Obj
from sampan.apiserver.http.replies import error_reply
from sampan.apiserver.server import ApiServer
from sampan.client.rest import Caller, RestClient
from sampan.cmd.cluster.processes.identities import AGENTS, NODES, may_be, part_of
from sampan.cmd.cluster.processes.local_sockets import address_of
from sampan.core.clock import Clock
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Handler, Headers, Reply, Request, Response
from sampan.core.log import get_logger

log = get_logger(__name__)
SOCKET = "apiserver.sock"
USER_HEADER = "x-remote-user"
# On this socket only.
LEASES_PATH, NODES_PATH = "/sampan/v1/lease-renewals", "/sampan/v1/nodes"
REPORTS_PATH = "/sampan/v1/node-reports"
_TOGETHER = frozenset({LEASES_PATH, NODES_PATH, REPORTS_PATH})
SERVER = "http://apiserver"
_HERE = "127.0.0.1"  # as in the audit log of calls from inside the process
_JSON = (("content-type", "application/json"),)


class LocalEdge:
    """Before the HTTP edge: who is it?"""

    def __init__(self, server: ApiServer, handler: Handler, known: Mapping[str, str]) -> None:
        """`known`: the secret of each part."""
        self._server, self._handler, self._known = server, handler, known

    async def reply(self, request: Request) -> Reply:
        part = self._identify(request)
        if part is None:
            return error_reply(Unauthorized("Unauthorized"))
        if part == NODES and request.method == "POST" and request.path in _TOGETHER:
            return _left(await self._act_together(request))
        return await self._handler(request)

    async def _act_together(self, request: Request) -> Collection[str]:
        asked = orjson.loads(request.body)
        if request.path == LEASES_PATH:
            return await self._server.renew_leases(asked)
        if request.path == REPORTS_PATH:
            return await self._server.report_nodes(asked, AGENTS[NODES])
        return await self._server.register_nodes(asked["pattern"], asked["addresses"])

    async def wants_body(self, request: Request) -> bool:
        return self._identify(request) is not None and await self._server.wants_body(request)

    def _identify(self, request: Request) -> str | None:
        """The part, whose caller is noted in the request."""
        part = part_of(request.headers.get("authorization", ""), self._known)
        user = request.headers.get(USER_HEADER, "")
        if part is None or not may_be(part, user):
            return None
        request.caller, request.remote = user, _HERE
        return part


def _left(names: Collection[str]) -> Response:
    return Response(200, _JSON, orjson.dumps({"left": list(names)}))


class LocalApi:
    """Clients of the socket for one part; one pool of connections for all of them."""

    def __init__(self, directory: Path, part: str, secret: str, clock: Clock) -> None:
        self._secret, self._clock, self._agent = secret, clock, AGENTS[part]
        self._http = HttpClient(unix_path=address_of(directory, SOCKET))
        self._rng = random.Random()

    def client_of(self, user: str) -> RestClient:
        caller = Caller(_PartCredentials(self._secret, user), self._agent)
        return RestClient(self._http, SERVER, caller, clock=self._clock, rng=self._rng)

    async def renew(self, times: Mapping[str, str]) -> Collection[str]:
        """Node → renewTime; those that have to renew by themselves."""
        return await self._together(LEASES_PATH, dict(times), times)

    async def register(
        self, pattern: str, addresses: Mapping[str, Sequence[str]]
    ) -> Collection[str]:
        """Nodes like that one; those that have to register by themselves."""
        body = {"pattern": pattern, "addresses": dict(addresses)}
        return await self._together(NODES_PATH, body, addresses)

    async def report(self, images: Mapping[str, Sequence[Obj] | None]) -> Collection[str]:
        """Those that have to tell of themselves."""
        return await self._together(REPORTS_PATH, dict(images), images)

    async def _together(self, path: str, body: Obj, nodes: Mapping[str, object]) -> Collection[str]:
        node = next(iter(nodes), "")
        try:
            left = await self.client_of(f"system:node:{node}").post_path(path, body)
        except ApiError as error:
            log.info("bulk update of nodes failed", path=path, nodes=len(nodes), error=error)
            return nodes.keys()
        names: Collection[str] = left.get("left") or ()
        return names

    async def close(self) -> None:
        await self._http.close()


class _PartCredentials:
    """A part's word for who it is."""

    def __init__(self, secret: str, user: str) -> None:
        self._headers = (("authorization", f"Bearer {secret}"), (USER_HEADER, user))

    async def headers(self) -> Headers:
        return self._headers

    def refused(self) -> None:
        """There is no other."""
