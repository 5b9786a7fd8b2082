"""A registry elsewhere that sends its clients to the node's own loopback.

Job: pulls from it by redirects and realms to every spelling of this machine; print what listened
    there and was asked. Run as a program in a network namespace of its own.
"""

import asyncio
import json
import sys

from sampan.core.clock import SystemClock
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Request, Response
from sampan.core.http.server import Server
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.hosts import Host
from sampan.runtime.images.registry_client import Login, RegistryClient, contexts_of

PLACES = (
    "127.0.0.1", "127.1.2.3", "127.1", "2130706433", "0x7f.1", "0", "0.0.0.0", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "localhost", "LOCALHOST",
    "localhost.", "ip6-localhost", "[fe80::1%25lo]", "[::1%25lo]", "user@127.0.0.1",
    "169.254.169.254", "[fd00:ec2::254]", "100.100.100.200",
)  # fmt: skip


async def main() -> None:
    own = sys.argv[1]
    asked: list[str] = []

    async def canary(request: Request) -> Response:
        asked.append(request.path)
        return Response(200, (), b'{"token": "stolen"}')

    leads_to = ""

    async def lead_on(request: Request) -> Response:
        if request.path.endswith("manifests/redirect"):
            return Response(307, (("location", f"{leads_to}/admin"),), b"")
        told = f'Bearer realm="{leads_to}/token"'
        return Response(401, (("www-authenticate", told),), b"")

    servers = [Server(canary, clock=SystemClock(), name="canary") for _ in range(2)]
    port = await servers[0].start("127.0.0.1", 0)
    await servers[1].start("::1", port)
    registry = Server(lead_on, clock=SystemClock(), name="registry")
    host = Host(f"http://{own}:{await registry.start(own, 0)}/v2")
    tried = 0
    for place in PLACES:
        leads_to = f"http://{place}:{port}"
        for tag in ("redirect", "realm"):
            contexts = contexts_of(host.encryption)
            client = RegistryClient(
                host, contexts, "registry.test", "team/app", Login("alice", "secret")
            )
            try:
                async with asyncio.timeout(20):
                    await client.get(f"manifests/{tag}", "*/*")
            except (ImageError, HttpError):
                tried += 1
            finally:
                await client.close()
    for server in (*servers, registry):
        await server.stop(0)
    print(json.dumps({"asked": asked, "refused": tried, "of": 2 * len(PLACES)}))


if __name__ == "__main__":
    asyncio.run(main())
