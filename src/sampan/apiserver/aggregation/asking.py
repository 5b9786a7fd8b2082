"""Requests of this server itself to aggregated servers.

Job: GET one document as the aggregator itself, within a time and a size.
"""

import asyncio

from sampan.apiserver.aggregation.identity_headers import identity_headers
from sampan.apiserver.authn.user import MASTERS, User
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError, HttpTimeout
from sampan.core.http.origin import Target

ASK_SECONDS = 5.0
LIST_BYTES = 1024 * 1024
OPENAPI_BYTES = 16 * 1024 * 1024
_AGGREGATOR = User("system:kube-aggregator", (MASTERS,))


class TooLarge(HttpError):
    """There is an answer, of more bytes than anybody wants."""


async def ask(http: HttpClient, url: Target, most_bytes: int = LIST_BYTES) -> tuple[int, bytes]:
    """Status and body. Raises HttpError."""
    headers = [("accept", "application/json"), *identity_headers(_AGGREGATOR)]
    try:
        async with asyncio.timeout(ASK_SECONDS):
            stream = await http.stream("GET", url, headers=headers, timeout_seconds=None)
            try:
                parts, size = [], 0
                async for part in stream:
                    parts.append(part)
                    size += len(part)
                    if size > most_bytes:
                        raise TooLarge(f"the answer is larger than {most_bytes} bytes")
            finally:
                await stream.aclose()
    except TimeoutError as error:
        raise HttpTimeout(f"GET {url}: no answer within {ASK_SECONDS} s") from error
    return stream.status, b"".join(parts)
