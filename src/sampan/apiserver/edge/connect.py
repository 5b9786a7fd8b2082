"""Connect requests: what the kubelet of a node answers, or a backend behind it.

Job: authorize and admit logs, exec, attach, port-forward and proxying, then hand the request over.
"""

from sampan.api.calls import Call
from sampan.api.errors import ServiceUnavailable
from sampan.api.objects import Obj, copy_of
from sampan.api.rules.kubelet_paths import connects
from sampan.apiserver.authn.user import User
from sampan.apiserver.chain import Chain
from sampan.apiserver.edge.request_bodies import refuse_too_large
from sampan.apiserver.http.request import RequestInfo
from sampan.apiserver.proxy import connect_options
from sampan.apiserver.proxy.node_proxy import NodeProxy
from sampan.core.fast_dataclass import replace
from sampan.core.http.messages import Reply, Request


class ConnectEdge:
    def __init__(self, chain: Chain, nodes: NodeProxy | None) -> None:
        """`nodes` None: this server has no kubelet client."""
        self._chain, self._nodes = chain, nodes

    async def reply(self, request: Request, info: RequestInfo, user: User) -> Reply:
        """Raises ApiError."""
        resource, subresource = info.resource, info.subresource
        assert resource is not None
        rest = _raw_rest(request.path, info) if subresource == "proxy" else ""
        asked: Obj = {}

        def options() -> Obj:
            refuse_too_large(request)
            asked.update(connect_options.options_of(resource, subresource, request.query, rest))
            admitted: Obj = copy_of(asked)
            return admitted

        call = Call(info.verb, resource, info.namespace, info.name, subresource)
        if resource.plural == "nodes" and info.verb != "create" and connects(rest):
            # By way of the kubelet: as exec, attach and port-forward of a pod.
            await self._chain.authorize(user, replace(call, verb="create"))
        admitted = await self._chain.connect(user, call, options)
        if self._nodes is None:
            raise ServiceUnavailable("no kubelet client configured")
        if subresource == "log":
            return await self._nodes.logs(info.namespace, info.name, request)
        if subresource == "proxy":
            rest = rest if admitted == asked else connect_options.path_of(admitted)
            return await self._nodes.proxy(
                resource.plural, info.namespace, info.name, rest, request
            )
        if admitted != asked:
            request = replace(request, query=connect_options.query_of(admitted))
        return await self._nodes.connect(subresource, info.namespace, info.name, request)


def _raw_rest(path: str, info: RequestInfo) -> str:
    """What follows proxy/, still encoded: it is not ours to read."""
    before = 8 if info.namespace else 6  # /api/v1/namespaces/NS/pods/NAME/proxy, /api/v1/nodes/…
    rest = path.split("/")[before:]
    return "/" + "/".join(rest) if rest else ""
