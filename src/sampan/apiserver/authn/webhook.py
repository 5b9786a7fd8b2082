"""The webhook token authenticator: another server knows the token.

Job: TokenReview out, a user or nobody back; answers are remembered for a while.
Invariant: tokens are remembered by their digest only; at most MOST.
Invariant: a server that cannot be asked authenticates nobody, and that is not remembered.
"""

import hashlib

from sampan.api.objects import Obj
from sampan.apiserver.authn.jwt import BadToken
from sampan.apiserver.authn.user import User
from sampan.apiserver.outside.webhook_client import Caller, CallFailed
from sampan.core.bounded import Bounded
from sampan.core.clock import Clock

MOST = 4096
TIMEOUT_SECONDS = 30.0


class TokenWebhook:
    def __init__(self, caller: Caller, remember_seconds: float, clock: Clock) -> None:
        self._caller, self._seconds, self._clock = caller, remember_seconds, clock
        self._known: Bounded[tuple[bytes, tuple[str, ...]], tuple[float, User | None]] = Bounded(
            MOST
        )

    async def user(self, token: str, audiences: tuple[str, ...]) -> User | None:
        """None: it does not know the token. Raises BadToken."""
        key = (hashlib.sha256(token.encode()).digest(), audiences)
        known = self._known.get(key)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        found = await self._ask(token, audiences)
        if self._seconds > 0:
            self._known[key] = (self._clock.monotonic() + self._seconds, found)
        return found

    async def _ask(self, token: str, audiences: tuple[str, ...]) -> User | None:
        review: Obj = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token, "audiences": list(audiences)},
        }
        try:
            status = (await self._caller.post(review, TIMEOUT_SECONDS)).get("status") or {}
        except CallFailed as error:
            raise BadToken(f"the authentication webhook failed: {error}") from error
        if status.get("authenticated") is not True:
            if status.get("error"):
                raise BadToken(str(status["error"]))
            return None
        accepted = status.get("audiences") or []
        if accepted and not set(accepted) & set(audiences):
            return None
        return _user(status.get("user") or {})


def _user(given: Obj) -> User | None:
    if not given.get("username"):
        return None
    extra = {key: tuple(values) for key, values in (given.get("extra") or {}).items()}
    groups = tuple(given.get("groups") or ())
    return User(str(given["username"]), groups, str(given.get("uid") or ""), extra)
