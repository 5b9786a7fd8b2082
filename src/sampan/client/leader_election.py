"""Leader election by Lease: at most one of several processes does the work.

Job: a pure decision over the lease as it was seen, and the loop that carries it out.
Invariant: who did not renew within `renew_deadline_seconds` stops leading before anybody else may
    take over (`renew_deadline_seconds` < `lease_seconds`).
Invariant: a foreign holder is judged by when *we* saw its last change, on our own clock: clocks of
    machines differ.
Owner: one LeaderElector per process and lease.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

from sampan.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from sampan.api.objects import Obj, copy_of, micro_time_text
from sampan.api.resources import LEASES
from sampan.client.contract import Client
from sampan.core.backoff import with_jitter
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks

log = get_logger(__name__)

UNHEALTHY_SECONDS = 20.0  # as upstream: how long after its end a lease that we hold is a trouble


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """As upstream's leader election."""

    namespace: str
    name: str
    identity: str
    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A lease, and when (monotonic) its spec was first seen to be so."""

    spec: Obj
    since: float


def observation(before: Seen | None, spec: Obj, now: float) -> Seen:
    """Only a change of the record shows that its holder lives."""
    return before if before is not None and before.spec == spec else Seen(spec, now)


def may_take(lease: Seen, identity: str, now: float) -> bool:
    """Ours already, given up, or not renewed for as long as its holder promised."""
    holder = lease.spec.get("holderIdentity") or ""
    if holder in ("", identity):
        return True
    return now >= lease.since + float(lease.spec.get("leaseDurationSeconds") or 0)


def taken_spec(spec: Obj, settings: LeaseSettings, wall: float) -> Obj:
    """The lease's spec when we take or renew it."""
    changes_hands = spec.get("holderIdentity") != settings.identity
    transitions = int(spec.get("leaseTransitions") or 0)
    return {
        **spec,
        "holderIdentity": settings.identity,
        "leaseDurationSeconds": settings.lease_seconds,
        "acquireTime": micro_time_text(wall) if changes_hands else spec.get("acquireTime"),
        "renewTime": micro_time_text(wall),
        "leaseTransitions": transitions + 1 if changes_hands and spec else transitions,
    }


def released_spec(spec: Obj, wall: float) -> Obj:
    """Given up: the next one need not wait."""
    return {
        **spec,
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "renewTime": micro_time_text(wall),
    }


class LeaderElector:
    def __init__(
        self, client: Client, settings: LeaseSettings, *, clock: Clock, rng: random.Random
    ) -> None:
        assert settings.renew_deadline_seconds < settings.lease_seconds, settings
        self._client, self._settings = client, settings
        self._clock, self._rng = clock, rng
        self._seen: Seen | None = None
        self._renewed = clock.monotonic()
        self.leading = False

    def trouble(self) -> str:
        """What is wrong with a lease that we hold; empty: nothing. As upstream's health check."""
        settings = self._settings
        late = self._clock.monotonic() - self._renewed - settings.lease_seconds
        if not self.leading or late <= UNHEALTHY_SECONDS:
            return ""
        return f"failed election to renew leadership on lease {settings.name}"

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run `lead` while we have it, and return when it is lost or `lead`
        ends. The lease is given up on the way out."""
        await self._acquire()
        tasks = Tasks(f"leader/{self._settings.name}")
        self.leading = True
        log.info("became leader", lease=self._settings.name, identity=self._settings.identity)
        try:
            renewing = tasks.start("renew", self._renew_until_lost())
            leading = tasks.start("lead", _await(lead))
            await asyncio.wait({renewing, leading}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await tasks.stop()
            self.leading = False
            await self._release()
        if leading.done() and not leading.cancelled():
            leading.result()

    async def _acquire(self) -> None:
        while not await self._try_renew():
            await self._clock.sleep(with_jitter(self._settings.retry_seconds, 1.2, self._rng))

    async def _renew_until_lost(self) -> None:
        renewed = self._clock.monotonic()
        deadline = self._settings.renew_deadline_seconds
        while (left := renewed + deadline - self._clock.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._clock.sleep(self._settings.retry_seconds)
                    began = self._clock.monotonic()
                    if await self._try_renew():
                        renewed = began
            except TimeoutError:
                break
        log.warning("leader election lost", lease=self._settings.name)

    async def _try_renew(self) -> bool:
        try:
            began = self._clock.monotonic()
            took = await self._took()
        except (AlreadyExists, Conflict):
            return False  # somebody else was faster
        except ApiError as error:
            log.warning("failed to acquire lease", lease=self._settings.name, error=error)
            return False
        self._renewed = began if took else self._renewed
        return took

    async def _took(self) -> bool:
        settings = self._settings
        try:
            lease = await self._client.get(LEASES, settings.namespace, settings.name)
        except NotFound:
            meta = {"name": settings.name, "namespace": settings.namespace}
            lease = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": meta,
                "spec": taken_spec({}, settings, self._clock.now()),
            }
            await self._client.create(LEASES, lease, settings.namespace)
            return True
        now = self._clock.monotonic()
        self._seen = observation(self._seen, lease.get("spec") or {}, now)
        if not may_take(self._seen, settings.identity, now):
            return False
        mine = copy_of(lease)
        mine["spec"] = taken_spec(self._seen.spec, settings, self._clock.now())
        await self._client.update(LEASES, mine)
        return True

    async def _release(self) -> None:
        settings = self._settings
        try:
            lease = copy_of(await self._client.get(LEASES, settings.namespace, settings.name))
            if lease["spec"].get("holderIdentity") == settings.identity:
                lease["spec"] = released_spec(lease["spec"], self._clock.now())
                await self._client.update(LEASES, lease)
        except ApiError as error:
            log.info("failed to release lease, it will expire", error=error)


async def _await(work: Callable[[], Awaitable[None]]) -> None:
    await work()
