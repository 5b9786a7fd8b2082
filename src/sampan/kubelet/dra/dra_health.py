"""Health of the devices that DRA drivers have, as they say it.

Job: listen to drivers that tell it, remember what they said last, wake the pods that have a device
    of another health.
Invariant: what was not said again in time is unknown; no timer: whoever asks is told.
Owner: NodePlugins, where ResourceHealthStatus is on.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger

if TYPE_CHECKING:
    from sampan.plugins.dra import DeviceHealth

log = get_logger(__name__)

UNKNOWN = "Unknown"
# As upstream, where a driver names no other.
TIMEOUT_SECONDS = 30.0
Place = tuple[str, str]  # pool, device
_LONGEST = 1024  # message, in bytes
_CUT = "..."


@dataclass(frozen=True, slots=True)
class _Report:
    health: str
    message: str
    until: float  # monotonic


class DraHealth:
    def __init__(
        self, clock: Clock, holders: Callable[[str], Mapping[Place, frozenset[str]]]
    ) -> None:
        """`holders`: of a driver's devices, the pods that have them, by their uids."""
        self._clock, self._holders = clock, holders
        self._reports: dict[str, dict[Place, _Report]] = {}  # by driver
        self.changed: Callable[[str], None] = lambda _uid: None  # for a pod

    def of(self, driver: str, pool: str, device: str) -> tuple[str, str]:
        """A word, and what the driver has to say about it."""
        said = self._reports.get(driver, {}).get((pool, device))
        if said is None or self._clock.monotonic() > said.until:
            return UNKNOWN, ""
        return said.health, said.message

    async def follow(
        self, driver: str, watch: "Callable[[], AsyncIterator[Sequence[DeviceHealth]]]"
    ) -> None:
        """For as long as the driver tells it."""
        try:
            async for answer in watch():
                self._take(driver, answer)
        except GrpcFailure as failure:
            log.info("DRA driver does not report device health", driver=driver, why=failure)
        finally:
            gone = self._reports.pop(driver, {})
            self._wake(driver, gone)

    def _take(self, driver: str, devices: "Sequence[DeviceHealth]") -> None:
        known, now = self._reports.setdefault(driver, {}), self._clock.monotonic()
        changed = {}
        for item in devices:
            place = (item.pool, item.device)
            message = _cut(item.message)
            if self.of(driver, *place) != (item.health, message):
                changed[place] = item.health
            until = now + (item.seconds or TIMEOUT_SECONDS)
            known[place] = _Report(item.health, message, until)
        self._wake(driver, changed)

    def _wake(self, driver: str, places: Mapping[Place, object]) -> None:
        holders = self._holders(driver)
        for uid in sorted({uid for place in places for uid in holders.get(place, ())}):
            self.changed(uid)


def _cut(message: str) -> str:
    """As upstream, which counts bytes; a character is not cut in two."""
    written = message.encode()
    if len(written) <= _LONGEST:
        return message
    return written[: _LONGEST - len(_CUT)].decode(errors="ignore") + _CUT
