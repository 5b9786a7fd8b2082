"""Authentication and authorisation of the kubelet's HTTP server: certificates, tokens, reviews.

Job: a request → what of the node it asks for → its refusal, or nothing.
Invariant: nobody is let in whom neither the cluster's authority nor the API vouched for.
Owner: KubeletServer.
"""

from sampan.api.errors import ApiError
from sampan.api.rules.kubelet_paths import connects
from sampan.client.contract import Client
from sampan.client.delegated_access import DelegatedAccess
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request, Response

_TEXT = (("content-type", "text/plain; charset=utf-8"),)
_VERBS = {
    "GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
    "DELETE": "delete",
}  # fmt: skip
# First part of the path → what of the node is asked for; all else is its proxy.
_SUBRESOURCES = {"stats": "stats", "metrics": "metrics", "logs": "log", "checkpoint": "checkpoint"}
_FINE_GRAINED = {"pods": "pods", "runningpods": "pods", "healthz": "healthz", "configz": "configz"}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request is to the API: one of `subresources` of the node must be allowed."""

    verb: str
    subresources: tuple[str, ...]


def wish_of(method: str, path: str) -> Wish:
    """As upstream's request attributes, with fine-grained authorization; but who runs something in
    a container, or connects to it, needs `create` also by a WebSocket, which begins with a GET."""
    first = path.lstrip("/").partition("/")[0]
    verb = "create" if connects(path) else _VERBS.get(method, "")
    if first in _SUBRESOURCES:
        return Wish(verb, (_SUBRESOURCES[first],))
    finer = (_FINE_GRAINED[first],) if first in _FINE_GRAINED else ()
    return Wish(verb, (*finer, "proxy"))


class ServerAccess:
    def __init__(self, node_name: str, client: Client | None, clock: Clock) -> None:
        """Without a client only certificates of the cluster's masters are let in."""
        self._node_name = node_name
        self._api = DelegatedAccess(client, clock)

    async def refusal(self, request: Request) -> Response | None:
        try:
            caller = await self._api.caller(request)
        except ApiError as error:
            return Response(500, _TEXT, f"the token was not reviewed: {error}\n".encode())
        if caller is None:
            return Response(401, _TEXT, b"Unauthorized")
        request.known_as = caller.user
        wish = wish_of(request.method, request.path)
        about = (
            f"(user={caller.user}, verb={wish.verb}, resource=nodes, "
            f"subresource(s)=[{' '.join(wish.subresources)}])\n"
        )
        try:
            for subresource in wish.subresources:
                if await self._api.may(caller, "resourceAttributes", self._node(wish, subresource)):
                    return None
        except ApiError:
            return Response(500, _TEXT, f"Authorization error {about}".encode())
        return Response(403, _TEXT, f"Forbidden {about}".encode())

    def _node(self, wish: Wish, subresource: str) -> dict[str, str]:
        return {
            "verb": wish.verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": subresource,
            "name": self._node_name,
        }
