"""DRA manager: claims are prepared by their drivers before a pod starts, and given back after.

Job: prepare and unprepare ResourceClaims, keep on disk which are, say which CDI devices a container
    gets of them.
Invariant: what a driver is asked to prepare is on disk before it is asked.
Invariant: a claim is unprepared when its last pod on the node has ended, and not before.
Invariant: about one claim one call is under way at a time.
Owner: PodSync and Performer ask.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.api.resources import RESOURCE_CLAIMS
from sampan.api.rules.pod_claims import (
    ClaimNotThere,
    PodClaim,
    claim_entries,
    drivers_of,
    is_reserved_for,
    pod_claims,
    why_not_for,
)
from sampan.client.contract import Client
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import replace
from sampan.core.grpc.status_codes import GrpcFailure, code_name
from sampan.core.lock_per_key import LockPerKey
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.resources_hook import ClaimFailure, GrantFailure, Grants
from sampan.kubelet.dra import claim_infos
from sampan.kubelet.dra.claim_health import DeviceHealth, health_of_claims
from sampan.kubelet.dra.claim_infos import BadCheckpoint, ClaimInfo, Key, PreparedDevice
from sampan.kubelet.dra.dra_drivers import DraDrivers, DriverMissing
from sampan.kubelet.dra.dra_health import UNKNOWN
from sampan.kubelet.resource_managers.state_file import BadState, write_whole
from sampan.plugins.pod_shares import ClaimDevice, ClaimShare

if TYPE_CHECKING:
    from sampan.plugins.dra import ClaimName, Readied

    Answers = Mapping[str, Sequence[Readied] | str]

log = get_logger(__name__)
T = TypeVar("T")

# As often as upstream looks for what is left; here only what failed is looked at again.
RETRY = Backoff(first_seconds=1.0, cap_seconds=60.0)
BUCKETS = tuple(round(0.1 * 400 ** (step / 14), 6) for step in range(15))


class DraManager:
    def __init__(
        self,
        drivers: DraDrivers,
        client: Client,
        root_dir: str,
        *,
        tasks: Tasks,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """Raises BadState."""
        self._drivers, self._client, self._tasks, self._clock = drivers, client, tasks, clock
        self._path = f"{root_dir}/{claim_infos.FILE}"
        self._infos: dict[Key, ClaimInfo] = self._restored()
        self._locks, self._turn = LockPerKey(), asyncio.Lock()
        self._came = asyncio.Event()
        # Of a driver's device, by its pool and name; where nobody follows that it is not known.
        self.device_health: DeviceHealth = lambda *_: (UNKNOWN, "")
        self._leaving: set[str] = set()  # pods whose claims are given back since the start
        self._seconds = metrics.histogram(
            "dra_operations_duration_seconds",
            "Latency histogram in seconds for the duration of handling all ResourceClaims "
            "referenced by a pod when the pod starts or stops. Identified by the name of the "
            "operation (PrepareResources or UnprepareResources) and separated by the success of "
            "the operation. The number of failed operations is provided through the histogram's "
            "overall count.",
            ("operation_name", "is_error"),
            buckets=BUCKETS,
        )
        self._call_seconds = metrics.histogram(
            "dra_grpc_operations_duration_seconds",
            "Duration in seconds of the DRA gRPC operations",
            ("driver_name", "method_name", "grpc_status_code"),
            buckets=BUCKETS,
        )
        metrics.gauge(
            "dra_resource_claims_in_use",
            "The number of ResourceClaims that are currently in use on the node, by driver name "
            "(driver_name label value) and across all drivers (special value <any> for "
            "driver_name). Note that the sum of all by-driver counts is not the total number of "
            "in-use ResourceClaims because the same ResourceClaim might use devices from different "
            "drivers. Instead, use the count for the <any> driver_name.",
            ("driver_name",),
        ).read_from(self._in_use)

    def _restored(self) -> dict[Key, ClaimInfo]:
        if not os.path.exists(self._path):
            return {}
        try:
            return claim_infos.read(Path(self._path).read_text())
        except (BadCheckpoint, OSError, ValueError) as error:
            raise BadState("DRA", self._path, error) from error

    def _in_use(self) -> dict[tuple[str, ...], float]:
        prepared = [info for info in self._infos.values() if info.prepared]
        found: dict[tuple[str, ...], float] = {("<any>",): float(len(prepared))}
        for info in prepared:
            for driver in info.drivers:
                found[(driver,)] = found.get((driver,), 0.0) + 1.0
        return found

    def driver_came(self) -> None:
        self._came.set()
        self._came = asyncio.Event()

    def devices(self, driver: str) -> Mapping[tuple[str, str], frozenset[str]]:
        """Pool and name of those that are prepared → the pods that have them."""
        found: dict[tuple[str, str], frozenset[str]] = {}
        for info in self._infos.values():
            for device in info.drivers.get(driver, ()):
                place = (device.pool, device.device)
                found[place] = found.get(place, frozenset()) | info.pods
        return found

    # Up.

    async def prepare(self, pod: Obj) -> None:
        """Raises ClaimFailure."""
        if claim_entries(pod):
            await self._timed("PrepareResources", self._prepare(pod), "prepare dynamic resources")

    async def _prepare(self, pod: Obj) -> None:
        claims = [await self._checked(pod, wanted) for wanted in pod_claims(pod)]
        drivers = {driver for claim in claims for driver in drivers_of(claim) or ()}
        for driver in sorted(drivers):
            self._drivers.caller(driver)
        keys = sorted({(namespace_of(claim), name_of(claim)) for claim in claims})
        async with self._held(keys):
            missing = [info for info in self._used(pod, claims) if not info.prepared]
            await self._store()
            if missing:
                await self._call_drivers(missing)

    async def _checked(self, pod: Obj, wanted: PodClaim) -> Obj:
        try:
            claim = await self._client.get(RESOURCE_CLAIMS, namespace_of(pod), wanted.claim)
        except ApiError as error:
            raise ClaimFailure(f"fetch ResourceClaim {wanted.claim}: {error}") from error
        if wanted.is_own and (why := why_not_for(pod, claim)):
            raise ClaimFailure(why)
        if not is_reserved_for(pod, claim):
            raise ClaimFailure(
                f"pod {name_of(pod)} ({uid_of(pod)}) is not allowed to use ResourceClaim "
                f"{wanted.claim} ({uid_of(claim)})"
            )
        if drivers_of(claim) is None:
            raise ClaimFailure(f"ResourceClaim {wanted.claim}: not allocated")
        return claim

    def _used(self, pod: Obj, claims: Iterable[Obj]) -> list[ClaimInfo]:
        """What is known of them, with the pod as a user."""
        found = []
        for claim in claims:
            key = (namespace_of(claim), name_of(claim))
            known = self._infos.get(key)
            if known is None:
                drivers: dict[str, tuple[PreparedDevice, ...]]
                drivers = dict.fromkeys(drivers_of(claim) or (), ())
                known = ClaimInfo(uid_of(claim), key[1], key[0], drivers=drivers)
            elif known.uid != uid_of(claim):
                raise ClaimFailure(
                    f"old ResourceClaim with same name {key[1]} and different UID {known.uid} "
                    "still exists (previous pod force-deleted?!)"
                )
            self._infos[key] = known.used_by(uid_of(pod))
            found.append(self._infos[key])
        return list({info.key: info for info in found}.values())

    async def _call_drivers(self, infos: Sequence[ClaimInfo]) -> None:
        for driver in sorted({driver for info in infos for driver in info.drivers}):
            mine = [info for info in infos if driver in info.drivers]
            answers = await self._call(driver, "NodePrepareResources", mine)
            for info in mine:
                found = self._answer("NodePrepareResources", info, answers)
                devices = (
                    PreparedDevice(item.pool, item.device, tuple(item.requests),
                                   tuple(item.cdi_devices), item.share)
                    for item in found
                )  # fmt: skip
                self._infos[info.key] = self._infos[info.key].with_devices(driver, devices)
        for info in infos:
            self._infos[info.key] = replace(self._infos[info.key], prepared=True)
        await self._store()

    # What containers get.

    async def grants(self, pod: Obj, container: Obj) -> Grants | None:
        """Raises GrantFailure."""
        names = [
            name
            for info, request in self._claimed(pod, container)
            for name in info.cdi_devices(request)
        ]
        return Grants(cdi_devices=tuple(dict.fromkeys(names))) if names else None

    def claims_of(self, pod: Obj, container: Obj) -> list[ClaimShare]:
        """For the PodResources API."""
        try:
            claimed = self._claimed(pod, container)
        except GrantFailure:
            return []  # as upstream: nothing is prepared yet
        return [_share(info) for info, _ in claimed]

    def health(self, pod: Obj, container: str) -> list[Obj]:
        return health_of_claims(pod, container, self._infos, self.device_health)

    def _claimed(self, pod: Obj, container: Obj) -> list[tuple[ClaimInfo, str]]:
        """With the request of the claim that the container is about. Raises GrantFailure."""
        asked = (container.get("resources") or {}).get("claims") or ()
        if not asked:
            return []
        try:
            named = {wanted.entry: wanted.claim for wanted in pod_claims(pod)}
        except ClaimNotThere as error:
            raise GrantFailure(str(error)) from error
        found = []
        for item in asked:
            claim = named.get(item.get("name") or "")
            if claim is None:
                continue
            info = self._infos.get((namespace_of(pod), claim))
            if info is None:
                what = f"unable to get claim info for ResourceClaim {claim}"
                raise GrantFailure(f"internal error: {what}")
            found.append((info, str(item.get("request") or "")))
        return found

    # Down.

    async def unprepare(self, uid: str) -> None:
        """What the pod had, or may have had. Raises ClaimFailure."""
        if any(uid in info.pods for info in self._infos.values()):
            work = self._unprepare(uid)
            await self._timed("UnprepareResources", work, "unprepare dynamic resources")

    async def _unprepare(self, uid: str) -> None:
        keys = sorted(key for key, info in self._infos.items() if uid in info.pods)
        async with self._held(keys):
            mine = [self._infos[key] for key in keys if key in self._infos]
            ending = [info for info in mine if info.pods <= {uid}]
            for driver in sorted({driver for info in ending for driver in info.drivers}):
                concerned = [info for info in ending if driver in info.drivers]
                answers = await self._call(driver, "NodeUnprepareResources", concerned)
                for info in concerned:
                    self._answer("NodeUnprepareResources", info, answers)
            for info in mine:
                if info in ending:
                    del self._infos[info.key]
                else:
                    self._infos[info.key] = self._infos[info.key].left_by(uid)
            await self._store()

    def keep_only(self, is_known: Callable[[str], bool]) -> None:
        """Pods that went while the agent was away: what they had is given back."""
        users = {uid for info in self._infos.values() for uid in info.pods}
        for uid in sorted(users - self._leaving):
            if not is_known(uid):
                self._leaving.add(uid)
                self._tasks.start(f"claims of {uid}", self._give_back(uid))

    async def _give_back(self, uid: str) -> None:
        failures = 0
        while True:
            try:
                await self.unprepare(uid)
                return
            except ClaimFailure as error:
                failures += 1
                log.warning("claims of a pod that is gone were not unprepared, trying again",
                            uid=uid, error=error)  # fmt: skip
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY.delay(failures)):
                    await self._came.wait()

    # Between.

    @asynccontextmanager
    async def _held(self, keys: Iterable[Key]) -> AsyncIterator[None]:
        """In one order for everybody."""
        async with contextlib.AsyncExitStack() as stack:
            for key in keys:
                await stack.enter_async_context(self._locks.held(key))
            yield

    async def _call(self, driver: str, method: str, infos: Sequence[ClaimInfo]) -> "Answers":
        protocol = await asyncio.to_thread(import_module, "sampan.plugins.dra")
        names: list[ClaimName] = [
            protocol.ClaimName(info.namespace, info.name, info.uid) for info in infos
        ]
        caller = self._drivers.caller(driver)
        call = caller.prepare if method == "NodePrepareResources" else caller.unprepare
        began, code = self._clock.monotonic(), "OK"
        try:
            answers: Answers = await call(names)
        except GrpcFailure as failure:
            code = failure.code
            raise ClaimFailure(f"{method}: {failure}") from failure
        finally:
            took = self._clock.monotonic() - began
            self._call_seconds.observe(took, driver, caller.path(method), code_name(code))
        known = {info.uid for info in infos}
        for uid in answers.keys() - known:
            raise ClaimFailure(f"{method} returned result for unknown claim UID {uid}")
        if len(answers) < len(infos):
            raise ClaimFailure(f"{method} skipped {len(infos) - len(answers)} ResourceClaims")
        return answers

    def _answer(self, method: str, info: ClaimInfo, answers: "Answers") -> "Sequence[Readied]":
        """Raises ClaimFailure."""
        found = answers[info.uid]
        if not isinstance(found, str):
            return found
        if found:
            raise ClaimFailure(f"{method} failed for ResourceClaim {info.name}: {found}")
        return ()

    async def _timed(self, operation: str, work: Awaitable[None], what: str) -> None:
        began, failed = self._clock.monotonic(), True
        try:
            await work
            failed = False
        except (ClaimFailure, ClaimNotThere, DriverMissing) as error:
            raise ClaimFailure(f"{what}: {error}") from error
        finally:
            # As upstream, whose label says the contrary of its name.
            said = "false" if failed else "true"
            self._seconds.observe(self._clock.monotonic() - began, operation, said)

    async def _store(self) -> None:
        """Raises ClaimFailure."""
        async with self._turn:
            text = claim_infos.written(self._infos.values())
            try:
                await asyncio.to_thread(write_whole, self._path, text)
            except OSError as error:
                raise ClaimFailure(f"checkpoint ResourceClaim state: {error}") from error


def _share(info: ClaimInfo) -> ClaimShare:
    devices = [
        ClaimDevice(driver, device.pool, device.device, device.cdi_devices, device.share)
        for driver, found in info.drivers.items()
        for device in found
    ]
    return ClaimShare(info.name, info.namespace, devices)
