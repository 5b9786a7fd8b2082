"""ResourceClaims of a simulated node: prepared, unless a script says that they fail.

Job: fail to prepare as a pod's script says, or where its driver is away.
Owner: SimulatedPlugins.
"""

from collections.abc import Callable, Sequence

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, namespace_of
from sampan.api.resources import RESOURCE_CLAIMS
from sampan.api.rules.pod_claims import ClaimNotThere, claim_entries, drivers_of, pod_claims
from sampan.client.contract import Client
from sampan.core.grpc.status_codes import status_text
from sampan.kubelet.contracts.resources_hook import ClaimFailure, Grants

_WHAT = "prepare dynamic resources"


class PretendedClaims:
    def __init__(
        self,
        client: Client,
        why_not: Callable[[Obj], str | None],
        away: Callable[[], frozenset[str]],
    ) -> None:
        """`why_not`: this time; `away`: drivers that do not answer."""
        self._client, self._why_not, self._away = client, why_not, away

    async def prepare(self, pod: Obj) -> None:
        if not claim_entries(pod):
            return
        why = self._why_not(pod)
        if why is not None:
            raise ClaimFailure(f"{_WHAT}: NodePrepareResources: {status_text('UNKNOWN', why)}")
        if self._away():
            await self._check_drivers(pod)

    async def _check_drivers(self, pod: Obj) -> None:
        try:
            for wanted in pod_claims(pod):
                claim = await self._client.get(RESOURCE_CLAIMS, namespace_of(pod), wanted.claim)
                for driver in sorted(self._away() & {*(drivers_of(claim) or ())}):
                    raise ClaimFailure(f"{_WHAT}: DRA driver {driver} is not registered")
        except (ApiError, ClaimNotThere) as error:
            raise ClaimFailure(f"{_WHAT}: {error}") from error

    async def grants(self, pod: Obj, container: Obj) -> Grants | None:
        return None

    async def unprepare(self, uid: str) -> None:
        """Nothing to do."""

    def health(self, pod: Obj, container: str) -> Sequence[Obj]:
        return ()

    def keep_only(self, is_known: Callable[[str], bool]) -> None:
        """Nothing to do."""
