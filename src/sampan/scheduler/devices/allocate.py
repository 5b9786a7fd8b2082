"""Which devices a pod's claims get on one node. Pure.

Job: claims and the pools that a node can reach → an allocation for each claim, or none.
Invariant: no device is given twice, but for administrative access; every selector, taint and
    constraint is respected; of alternatives the first for which there is a way at all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from sampan.api.rules.device_taints import DeviceId
from sampan.api.rules.tolerations import is_tolerated
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.devices.device_pools import Pool
from sampan.scheduler.devices.devices import Device, DeviceClaim, DeviceClass, Request

MOST_RESULTS = 32  # devices of one claim, as the API allows
MOST_STEPS = 20_000  # of the search on one node; upstream gives up after some time
MOST_DEVICES = 256  # that one pod may ask for

Matches = Callable[[Device, str], bool]  # whether a CEL selector takes a device


TIMED_OUT = "timed out trying to allocate devices"  # there are too many combinations of them


class CannotAllocate(Exception):
    """Something is wrong with a claim or a class, whatever the node."""


@dataclass(frozen=True, slots=True)
class Picked:
    request: Request
    device: Device


class Search:
    """For one pod; asked about node after node."""

    def __init__(
        self,
        claims: Sequence[DeviceClaim],
        classes: Mapping[str, DeviceClass],
        in_use: Set[DeviceId],
        matches: Matches,
    ) -> None:
        self._claims, self._classes, self._in_use = claims, classes, in_use
        self._matches = matches
        asked = {
            claim.key: sum(min(max(item.count, 1) for item in those) for those in claim.requests)
            for claim in claims
        }
        for key, least in asked.items():
            if least > MOST_RESULTS:
                raise CannotAllocate(
                    f"claim {key}: number of requested devices {least} exceeds the claim limit "
                    f"of {MOST_RESULTS}"
                )
        if sum(asked.values()) > MOST_DEVICES:
            raise CannotAllocate(f"more than {MOST_DEVICES} devices are asked for")

    def allocated(self, pools: Sequence[Pool]) -> list[list[Picked]] | None:
        """For each claim its devices; None: there is no way. Raises CannotAllocate."""
        attempt = _Attempt(self, pools)
        return [list(item) for item in attempt.picked] if attempt.claim(0) else None

    def claim_at(self, at: int) -> DeviceClaim | None:
        return self._claims[at] if at < len(self._claims) else None

    def is_free(self, device: Device, request: Request) -> bool:
        return request.admin or device.id not in self._in_use

    def selects(self, device: Device, request: Request, claim: DeviceClaim) -> bool:
        wanted = self._classes.get(request.device_class)
        if wanted is None:
            raise CannotAllocate(
                f"claim {claim.key}, request {request.name}: could not retrieve device class "
                f"{request.device_class}"
            )
        return all(
            self._select(device, expression, f"{whose}: selector #{number}")
            for whose, expressions in (
                (f"class {wanted.name}", wanted.selectors),
                (f"claim {claim.key}", request.selectors),
            )
            for number, expression in enumerate(expressions)
        )

    def _select(self, device: Device, expression: str, where: str) -> bool:
        # Imported here: it is not loaded in clusters without devices.
        from sampan.scheduler.devices.device_selectors import BadSelector

        try:
            return self._matches(device, expression)
        except BadSelector as error:
            raise CannotAllocate(f"{where}: {error}") from error


class _Attempt:
    """One node: claim by claim, request by request, device by device; back where it fails."""

    def __init__(self, search: Search, pools: Sequence[Pool]) -> None:
        self._search, self._pools = search, pools
        self.picked: list[list[Picked]] = []
        self._taken: dict[DeviceId, list[int]] = {}  # by which claims of this attempt
        self._steps = 0

    def claim(self, at: int) -> bool:
        claim = self._search.claim_at(at)
        if claim is None:
            return True
        self.picked.append([])
        if self._request(at, claim, 0):
            return True
        self.picked.pop()
        return False

    def _request(self, at: int, claim: DeviceClaim, number: int) -> bool:
        if number == len(claim.requests):
            return self.claim(at + 1)
        for request in claim.requests[number]:
            if request.count:
                if self._some(at, claim, number, request, request.count):
                    return True
            elif self._all(at, claim, number, request):
                return True
        return False

    def _some(self, at: int, claim: DeviceClaim, number: int, request: Request, left: int) -> bool:
        if not left:
            return self._request(at, claim, number + 1)
        if len(self.picked[at]) + left > MOST_RESULTS:
            return False
        for device in self._candidates(request, claim):
            if self._take(at, claim, request, device):
                if self._some(at, claim, number, request, left - 1):
                    return True
                self._give_back(at, device)
        return False

    def _all(self, at: int, claim: DeviceClaim, number: int, request: Request) -> bool:
        """All that the selectors take, at least one; if one of them cannot be had, none."""
        for pool in self._pools:
            if pool.incomplete or pool.invalid:
                state = "invalid" if pool.invalid else "currently being updated"
                raise CannotAllocate(
                    f"claim {claim.key}, request {request.name}: asks for all devices, but "
                    f"resource pool {'/'.join(pool.identity)} is {state}"
                )
        wanted = [
            item
            for pool in self._pools
            for item in pool.devices
            if self._search.selects(item, request, claim)
        ]
        if not wanted or len(self.picked[at]) + len(wanted) > MOST_RESULTS:
            return False
        taken: list[Device] = []
        for device in wanted:
            if not self._search.is_free(device, request) or not self._take(
                at, claim, request, device
            ):
                break
            taken.append(device)
        if len(taken) == len(wanted) and self._request(at, claim, number + 1):
            return True
        for device in reversed(taken):
            self._give_back(at, device)
        return False

    def _candidates(self, request: Request, claim: DeviceClaim) -> Iterator[Device]:
        for pool in self._pools:
            if pool.incomplete or pool.invalid:
                continue
            for device in pool.devices:
                if self._search.is_free(device, request) and self._search.selects(
                    device, request, claim
                ):
                    yield device

    def _take(self, at: int, claim: DeviceClaim, request: Request, device: Device) -> bool:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise CannotAllocate(TIMED_OUT)
        mine, others = self.picked[at], self._taken.get(device.id, ())
        # As upstream: who only administers shares with other claims, not within its own.
        if others and (not request.admin or at in others):
            return False
        if not all(is_tolerated(request.tolerations, taint) for taint in device.taints):
            return False
        for constraint in claim.constraints:
            if constraint.concerns(request.name):
                value = device.attributes.get(constraint.attribute)
                if value is None or any(
                    item.device.attributes.get(constraint.attribute) != value
                    for item in mine
                    if constraint.concerns(item.request.name)
                ):
                    return False
        mine.append(Picked(request, device))
        self._taken.setdefault(device.id, []).append(at)
        return True

    def _give_back(self, at: int, device: Device) -> None:
        last = self.picked[at].pop()
        assert last.device is device
        claims = self._taken[device.id]
        claims.remove(at)
        if not claims:
            del self._taken[device.id]
