"""Service account tokens for projected volumes: asked for once, renewed in time.

Job: a token per pod, audience and life time; when the next one is due.
Invariant: a token is renewed when 80 % of its life, or 24 hours, are over; one that cannot be
    renewed is used for as long as it is good.
Owner: NodeVolumes.
"""

import random
from dataclasses import replace

from sampan.api.errors import ApiError
from sampan.api.objects import (
    Obj,
    name_of,
    namespace_of,
    seconds_of,
    spec_of,
    time_text,
    uid_of,
)
from sampan.api.resources import SERVICE_ACCOUNTS
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.kubelet.contracts.volumes_hook import VolumeFailure

log = get_logger(__name__)

DEFAULT_SECONDS = 3600
RENEW_AFTER, LONGEST_SECONDS, JITTER_SECONDS = 0.8, 24 * 3600.0, 10.0
RETRY_SECONDS = 30.0

Wanted = tuple[str, int]  # audience, seconds


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    expires: float
    due: float


class Tokens:
    def __init__(self, client: Client, *, clock: Clock, rng: random.Random) -> None:
        self._client, self._clock, self._rng = client, clock, rng
        self._tokens: dict[str, dict[Wanted, _Token]] = {}

    async def get(self, pod: Obj, projection: Obj) -> str:
        """Raises VolumeFailure."""
        return (await self._newest(pod, projection)).text

    async def status(self, pod: Obj, projection: Obj) -> Obj:
        """The status of a TokenRequest. Raises VolumeFailure."""
        token = await self._newest(pod, projection)
        return {"token": token.text, "expirationTimestamp": time_text(token.expires)}

    async def _newest(self, pod: Obj, projection: Obj) -> _Token:
        wanted = wanted_of(projection)
        known = self._tokens.setdefault(uid_of(pod), {})
        token = known.get(wanted)
        now = self._clock.now()
        if token is None or now >= token.due:
            known[wanted] = token = await self._renew(pod, wanted, token, now)
        return token

    def next_due(self, uid: str) -> float | None:
        return min((item.due for item in self._tokens.get(uid, {}).values()), default=None)

    def forget(self, uid: str) -> None:
        self._tokens.pop(uid, None)

    async def _renew(self, pod: Obj, wanted: Wanted, old: _Token | None, now: float) -> _Token:
        account = spec_of(pod).get("serviceAccountName") or "default"
        try:
            answer = await self._client.create(
                SERVICE_ACCOUNTS,
                _request(pod, wanted),
                namespace_of(pod),
                subresource="token",
                name=account,
            )
        except ApiError as error:
            if old is not None and now < old.expires:
                log.warning("token was not renewed, trying again", pod=name_of(pod), error=error)
                return replace(old, due=now + RETRY_SECONDS)
            raise VolumeFailure(f"failed to fetch token: {error}") from error
        expires = seconds_of(answer["status"]["expirationTimestamp"])
        life = min((expires - now) * RENEW_AFTER, LONGEST_SECONDS)
        due = now + life - self._rng.random() * min(JITTER_SECONDS, life / 2)
        return _Token(answer["status"]["token"], expires, due)


def wanted_of(projection: Obj) -> Wanted:
    seconds = projection.get("expirationSeconds") or DEFAULT_SECONDS
    return projection.get("audience") or "", int(seconds)


def _request(pod: Obj, wanted: Wanted) -> Obj:
    audience, seconds = wanted
    spec: Obj = {
        "expirationSeconds": seconds,
        "boundObjectRef": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": name_of(pod),
            "uid": uid_of(pod),
        },
    }
    if audience:
        spec["audiences"] = [audience]
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
