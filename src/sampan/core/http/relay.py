"""Passing a client's upgrade on to another server, byte for byte.

Job: ask the other server for the same upgrade, give the client its answer, then copy both ways.
Invariant: a half-close on one side becomes a half-close on the other, where its transport can.
Invariant: when a relay is over, both connections are closed.
"""

import asyncio
from collections.abc import Mapping

from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Connection, Headers, Reply, Request, Response, Upgrade
from sampan.core.http.origin import Url
from sampan.core.tasks import Tasks

# Of one connection only, never of the next one (RFC 9110, 7.6.1); Host belongs to the URL.
HOP_BY_HOP = frozenset({
    "connection", "content-length", "host", "keep-alive", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
# Servers before 1.24 (and runtimes built on them) do not split these at commas.
_ONE_LINE_EACH = frozenset({"x-stream-protocol-version"})


def wants_upgrade(request: Request) -> bool:
    tokens = request.headers.get("connection", "").lower().split(",")
    return "upgrade" in request.headers and "upgrade" in (token.strip() for token in tokens)


def end_to_end(headers: Mapping[str, str], *, without: frozenset[str] = frozenset()) -> Headers:
    """The headers that travel on to the next server, or back to the client."""
    named = headers.get("connection", "").lower().split(",")
    dropped = HOP_BY_HOP | without | {name.strip() for name in named}
    lines: list[tuple[str, str]] = []
    for name, value in headers.items():
        if name in _ONE_LINE_EACH:
            lines += [(name, part.strip()) for part in value.split(",")]
        elif name not in dropped:
            lines.append((name, value))
    return lines


async def pass_upgrade(
    client: HttpClient,
    request: Request,
    url: Url,
    *,
    without: frozenset[str] = frozenset(),
    more: Headers = (),
) -> Reply:
    """The other server's answer: an upgrade that is relayed, or its refusal as it is.
    Raises HttpError where there is no answer. `without`: headers that are not for the other one;
    `more`: those that are ours."""
    asked = [*end_to_end(request.headers, without=without), *more]
    upgrade = (("connection", "Upgrade"), ("upgrade", request.headers["upgrade"]))
    answer = await client.upgrade(request.method, url, headers=[*asked, *upgrade])
    if answer.connection is None:
        return Response(answer.status, end_to_end(answer.headers), answer.body)
    far = answer.connection
    chosen = (("connection", "Upgrade"), ("upgrade", answer.headers.get("upgrade", "")))

    async def take_over(near: Connection) -> None:
        await relay(near, far)

    return Upgrade((*end_to_end(answer.headers), *chosen), take_over)


async def relay(one: Connection, other: Connection) -> None:
    """Copy both ways until both sides have ended, or one is gone."""
    tasks = Tasks("relay")
    copies = {
        tasks.start("there", _copy(one, other)),
        tasks.start("back", _copy(other, one)),
    }
    try:
        done, pending = await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        if pending and all(copy.result() for copy in done):
            await asyncio.wait(pending)
    finally:
        await tasks.stop()
        one.close()
        other.close()


async def _copy(source: Connection, target: Connection) -> bool:
    """Whether the other direction may go on: the target was told that no more will come."""
    try:
        while data := await source.read():
            await target.write(data)
    except ConnectionError:
        return False  # either side may leave at any time
    return target.write_eof()
