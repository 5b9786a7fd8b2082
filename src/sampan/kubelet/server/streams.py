"""exec, attach and port-forward on the node: ask the runtime where, then pass the client through.

Job: query → what is asked of the runtime; the runtime's URL → the client's upgrade, relayed. A
    runtime without a streaming server of its own answers the client itself.
Invariant: nothing of the streams is interpreted here; the runtime's streaming server speaks for
    itself, so exit codes, half-closes, terminals and resizes are its own.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.relay import pass_upgrade, wants_upgrade
from sampan.core.log import get_logger
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.contracts.runtime import Runtime, RuntimeFailure
from sampan.kubelet.server.lookup import NotAvailable, PodLookup

log = get_logger(__name__)

# What identifies the caller to the node is not for the runtime.
_PRIVATE = frozenset({"authorization", "cookie"})


@dataclass(frozen=True, slots=True)
class Target:
    namespace: str
    pod: str
    container: str = ""
    uid: str = ""


def stream_options(query: str) -> StreamOptions:
    """As remotecommand's NewOptions. Raises NotAvailable."""
    given = parse_qs(query, keep_blank_values=True)
    tty = given.get("tty", [""])[0] == "1"
    options = StreamOptions(
        stdin=given.get("input", [""])[0] == "1",
        stdout=given.get("output", [""])[0] == "1",
        # A terminal has one output; stderr beside it would get nothing.
        stderr=given.get("error", [""])[0] == "1" and not tty,
        tty=tty,
        command=tuple(given.get("command", ())),
    )
    if not (options.stdin or options.stdout or options.stderr):
        raise NotAvailable("you must specify at least 1 of stdin, stdout, stderr")
    return options


class Streams:
    """Owns the connections to the runtime's streaming server until they are taken over."""

    def __init__(self, lookup: PodLookup, runtime: Runtime) -> None:
        self._lookup, self._runtime = lookup, runtime
        self._http = HttpClient()

    async def close(self) -> None:
        await self._http.close()

    async def run_in_container(self, target: Target, request: Request) -> Reply:
        """exec. Raises NotAvailable or RuntimeFailure."""
        options = stream_options(request.query)
        own = self._runtime.local_streams
        if own is not None:
            return await own.exec(await self._running(target), options, request)

        def ask(container: str) -> Awaitable[str]:
            return self._runtime.exec_url(container, options)

        return await self._pass(request, await self._url(target, ask, self._running))

    async def attach(self, target: Target, request: Request) -> Reply:
        options = stream_options(request.query)
        own = self._runtime.local_streams
        if own is not None:
            return await own.attach(await self._running(target), options, request)

        def ask(container: str) -> Awaitable[str]:
            return self._runtime.attach_url(container, options)

        return await self._pass(request, await self._url(target, ask, self._running))

    async def port_forward(self, target: Target, request: Request) -> Reply:
        own = self._runtime.local_streams
        if own is not None:
            return await own.port_forward(await self._sandbox(target), request)
        url = await self._url(target, self._runtime.port_forward_url, self._sandbox)
        return await self._pass(request, url)

    async def _url(
        self,
        target: Target,
        ask: Callable[[str], Awaitable[str]],
        find: Callable[[Target], Awaitable[str]],
    ) -> str:
        """Ask with what was last seen; it may have ended since, so `find` has the last word."""
        where = (target.namespace, target.pod, target.container, target.uid)
        try:
            seen = self._lookup.probably(*where)
            if seen:
                return await ask(seen)
        except (NotAvailable, RuntimeFailure) as error:
            log.debug("cached container id is stale", pod=target.pod, error=error)
        return await ask(await find(target))

    async def _sandbox(self, target: Target) -> str:
        return await self._lookup.sandbox_id(target.namespace, target.pod, target.uid)

    async def _running(self, target: Target) -> str:
        try:
            found = await self._lookup.find_container(
                target.namespace, target.pod, target.container, uid=target.uid
            )
        except NotAvailable as error:
            if error.status == 404 and "pod" in str(error).split()[0]:
                raise NotAvailable("pod does not exist", status=404) from error
            raise NotAvailable(f'container not found ("{target.container}")', status=500) from error
        if not found.running:
            raise NotAvailable(f'container not found ("{target.container}")', status=500)
        return found.id

    async def _pass(self, request: Request, url: str) -> Reply:
        if not wants_upgrade(request):
            return _upgrade_required()
        try:
            return await pass_upgrade(self._http, request, url, without=_PRIVATE)
        except HttpError as error:
            raise NotAvailable(f"error dialing backend: {error}", status=500) from error


def _upgrade_required() -> Response:
    return Response(400, (("content-type", "text/plain"),), b"Upgrade request required\n")
