"""Readers of leases outside of a cluster with virtual time.

Job: have the nodes' leases renewed before they are read, and as long as somebody follows them.
Invariant: a reader cannot tell leases that are renewed on demand from those that always are.
"""

from collections.abc import AsyncIterator

from sampan.core.http.messages import Handler, Reply, Request, Stream
from sampan.core.virtual_time.outside import closing
from sampan.kubelet.node.leases_on_demand import LeasesOnDemand

GROUP_PATH, PLURAL = "/apis/coordination.k8s.io/", "/leases"


class LeaseReaders:
    def __init__(self, handler: Handler, leases: LeasesOnDemand | None = None) -> None:
        """Without leases on demand: nothing to do."""
        self._handler, self.leases = handler, leases

    async def __call__(self, request: Request) -> Reply:
        leases = self.leases
        path = request.path
        if leases is None or not (path.startswith(GROUP_PATH) and PLURAL in path):
            return await self._handler(request)
        await leases.renew()
        reply = await self._handler(request)
        if isinstance(reply, Stream):
            return Stream(reply.status, reply.headers, _followed(leases, reply.chunks))
        return reply


async def _followed(leases: LeasesOnDemand, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with leases.followed():
        async with closing(chunks):
            async for chunk in chunks:
                yield chunk
