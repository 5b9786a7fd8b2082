"""Delegated authentication and authorization: TokenReview and SubjectAccessReview, remembered.

Job: a request → its caller, by certificate or token; a caller and a wish → yes or no.
Invariant: nobody is anybody whom neither the authority of the certificates nor the API vouched for.
Invariant: an answer of the API is used for minutes only, as upstream's delegated access does.
Owner: the server that asks.
"""

import hashlib
from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

from sampan.api.objects import Obj
from sampan.api.resources import Resource, by_plural
from sampan.client.contract import Client
from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request

# Whom every authorizer of the API lets do everything: the API server itself is one of them.
MASTERS = "system:masters"
_TOKEN_SECONDS, _ALLOWED_SECONDS, _DENIED_SECONDS = 120.0, 300.0, 30.0  # as upstream
_REMEMBERED = 4096

Kind = Literal["resourceAttributes", "nonResourceAttributes"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    user: str
    groups: tuple[str, ...]
    uid: str = ""


def caller_of(certificate: bytes) -> Caller:
    """User and groups that a verified certificate names."""
    from cryptography import x509  # with the first caller: it takes its time
    from cryptography.x509.oid import NameOID

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
        self._answers: Recent[object, tuple[float, T]] = Recent(_REMEMBERED)

    def get(self, key: object) -> T | None:
        until, answer = self._answers.get(key, (0.0, None))
        return answer if self._clock.monotonic() < until else None

    def keep(self, key: object, answer: T, seconds: float) -> T:
        self._answers[key] = (self._clock.monotonic() + seconds, answer)
        return answer


class DelegatedAccess:
    def __init__(self, client: Client | None, clock: Clock, judge: Client | None = None) -> None:
        """`client` has tokens reviewed, and wishes, unless there is a `judge` for those. Without
        them tokens are nobody's, and nobody may anything but the masters."""
        self._client, self._judge = client, judge or client
        self._callers: _Fresh[Caller] = _Fresh(clock)
        self._verdicts: _Fresh[bool] = _Fresh(clock)

    async def caller(self, request: Request) -> Caller | None:
        """Raises ApiError where a token could not be reviewed."""
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
        assert self._client is not None
        spec = {"token": token}
        status = await _review(self._client, "authentication.k8s.io", "tokenreviews", spec)
        if not status.get("authenticated"):
            return None
        user: Obj = status.get("user") or {}
        found = Caller(
            user.get("username") or "", tuple(user.get("groups") or ()), user.get("uid") or ""
        )
        return self._callers.keep(hashed, found, _TOKEN_SECONDS)

    async def may(self, caller: Caller, kind: Kind, attributes: Mapping[str, str]) -> bool:
        """Raises ApiError where the API could not be asked."""
        if MASTERS in caller.groups:
            return True
        if self._judge is None:
            return False
        key = (caller, kind, frozenset(attributes.items()))
        known = self._verdicts.get(key)
        if known is not None:
            return known
        asked = {
            "user": caller.user,
            "groups": list(caller.groups),
            "uid": caller.uid,
            kind: dict(attributes),
        }
        group, plural = "authorization.k8s.io", "subjectaccessreviews"
        status = await _review(self._judge, group, plural, asked)
        allowed = bool(status.get("allowed"))
        return self._verdicts.keep(key, allowed, _ALLOWED_SECONDS if allowed else _DENIED_SECONDS)


async def _review(client: Client, group: str, plural: str, spec: Obj) -> Obj:
    resource = _resource(group, plural)
    kind = {"apiVersion": f"{group}/v1", "kind": resource.kind}
    answer = await client.create(resource, {**kind, "spec": spec})
    return answer.get("status") or {}


def _resource(group: str, plural: str) -> Resource:
    found = by_plural(group, "v1", plural)
    assert found is not None, plural
    return found
