"""Who may ask the node's HTTP server what: by certificate or token, as the API says.

Job: a request → its refusal, or nothing. Tokens are reviewed by the API, and so is every wish.
Invariant: nobody is let in whom neither the cluster's authority nor the API vouched for.
Invariant: an answer of the API is used for minutes only, as upstream's kubelet does.
Owner: KubeletServer.
"""

import hashlib
from collections import OrderedDict
from typing import Generic, TypeVar

from cryptography import x509
from cryptography.x509.oid import NameOID

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.resources import Resource, by_plural
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http import Request, Response

# Whom every authorizer of the API lets do everything: the API server itself is one of them.
MASTERS = "system:masters"
_TOKEN_SECONDS, _ALLOWED_SECONDS, _DENIED_SECONDS = 120.0, 300.0, 30.0  # as upstream
_REMEMBERED = 4096
_TEXT = (("content-type", "text/plain; charset=utf-8"),)
_VERBS = {
    "GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
    "DELETE": "delete",
}  # fmt: skip
# First part of the path → what of the node is asked for; all else is its proxy.
_SUBRESOURCES = {"stats": "stats", "metrics": "metrics", "logs": "log", "checkpoint": "checkpoint"}
_FINE_GRAINED = {"pods": "pods", "runningpods": "pods", "healthz": "healthz", "configz": "configz"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    user: str
    groups: tuple[str, ...]
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request is to the API: one of `subresources` of the node must be allowed."""

    verb: str
    subresources: tuple[str, ...]


def wish_of(method: str, path: str) -> Wish:
    """As upstream's request attributes, with fine-grained authorization."""
    first = path.lstrip("/").partition("/")[0]
    verb = _VERBS.get(method, "")
    if first in _SUBRESOURCES:
        return Wish(verb, (_SUBRESOURCES[first],))
    finer = (_FINE_GRAINED[first],) if first in _FINE_GRAINED else ()
    return Wish(verb, (*finer, "proxy"))


def caller_of(certificate: bytes) -> Caller:
    """User and groups that a verified certificate names."""
    subject = x509.load_der_x509_certificate(certificate).subject
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return Caller(
        str(names[0].value) if len(names) == 1 else "",
        (*(str(group.value) for group in groups), "system:authenticated"),
    )


class _Fresh(Generic[T]):
    """Answers that are good for a while; the oldest go first when there are too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[object, tuple[float, T]] = OrderedDict()

    def get(self, key: object) -> T | None:
        until, answer = self._answers.get(key, (0.0, None))
        return answer if self._clock.monotonic() < until else None

    def keep(self, key: object, answer: T, seconds: float) -> T:
        self._answers[key] = (self._clock.monotonic() + seconds, answer)
        self._answers.move_to_end(key)
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return answer


class ServerAccess:
    def __init__(self, node_name: str, client: Client | None, clock: Clock) -> None:
        """Without a client only certificates of the cluster's masters are let in."""
        self._node_name, self._client = node_name, client
        self._callers: _Fresh[Caller] = _Fresh(clock)
        self._verdicts: _Fresh[bool] = _Fresh(clock)

    async def refusal(self, request: Request) -> Response | None:
        try:
            caller = await self._caller(request)
        except ApiError as error:
            return Response(500, _TEXT, f"the token was not reviewed: {error}\n".encode())
        if caller is None:
            return Response(401, _TEXT, b"Unauthorized")
        if MASTERS in caller.groups:
            return None
        wish = wish_of(request.method, request.path)
        about = (
            f"(user={caller.user}, verb={wish.verb}, resource=nodes, "
            f"subresource(s)=[{' '.join(wish.subresources)}])\n"
        )
        try:
            for subresource in wish.subresources:
                if await self._may(caller, wish.verb, subresource):
                    return None
        except ApiError:
            return Response(500, _TEXT, f"Authorization error {about}".encode())
        return Response(403, _TEXT, f"Forbidden {about}".encode())

    async def _caller(self, request: Request) -> Caller | None:
        if request.peer_certificate is not None:
            key = request.peer_certificate
            caller = self._callers.get(key)
            if caller is None:
                caller = self._callers.keep(key, caller_of(key), _TOKEN_SECONDS)
            return caller if caller.user else None
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip() or self._client is None:
            return None
        hashed = hashlib.sha256(token.strip().encode()).digest()
        return self._callers.get(hashed) or await self._reviewed(token.strip(), hashed)

    async def _reviewed(self, token: str, hashed: bytes) -> Caller | None:
        status = await self._review("authentication.k8s.io", "tokenreviews", {"token": token})
        if not status.get("authenticated"):
            return None
        user: Obj = status.get("user") or {}
        found = Caller(
            user.get("username") or "", tuple(user.get("groups") or ()), user.get("uid") or ""
        )
        return self._callers.keep(hashed, found, _TOKEN_SECONDS)

    async def _may(self, caller: Caller, verb: str, subresource: str) -> bool:
        if self._client is None:
            return False
        key = (caller, verb, subresource)
        known = self._verdicts.get(key)
        if known is not None:
            return known
        asked = {
            "user": caller.user,
            "groups": list(caller.groups),
            "uid": caller.uid,
            "resourceAttributes": {
                "verb": verb,
                "version": "v1",
                "resource": "nodes",
                "subresource": subresource,
                "name": self._node_name,
            },
        }
        status = await self._review("authorization.k8s.io", "subjectaccessreviews", asked)
        allowed = bool(status.get("allowed"))
        return self._verdicts.keep(key, allowed, _ALLOWED_SECONDS if allowed else _DENIED_SECONDS)

    async def _review(self, group: str, plural: str, spec: Obj) -> Obj:
        assert self._client is not None
        resource = _resource(group, plural)
        kind = {"apiVersion": f"{group}/v1", "kind": resource.kind}
        answer = await self._client.create(resource, {**kind, "spec": spec})
        return answer.get("status") or {}


def _resource(group: str, plural: str) -> Resource:
    found = by_plural(group, "v1", plural)
    assert found is not None, plural
    return found
