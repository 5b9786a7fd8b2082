"""fsGroup takes long: the pod is told, as upstream tells it.

Job: wait for a change of ownership; a warning after 30 seconds, and how far it is each minute.
"""

import asyncio
from collections.abc import Callable

from sampan.kubelet.volumes.ownership import Walked

REASON = "VolumePermissionChangeInProgress"
FIRST_SECONDS, EACH_SECONDS = 30.0, 60.0
_POLICY = (
    "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/"
    "#configure-volume-permission-and-ownership-change-policy-for-pods"
)


async def told_while(
    changing: "asyncio.Future[None]", walked: Walked, place: str, tell: Callable[[str], None]
) -> None:
    """Raises OSError. `place`: the directory, from the pod's uid on."""
    what = f"Setting volume ownership for {place}"
    text = f"{what} is taking longer than expected, consider using OnRootMismatch - {_POLICY}"
    seconds = FIRST_SECONDS
    while not (await asyncio.wait([changing], timeout=seconds))[0]:
        tell(text if seconds == FIRST_SECONDS else f"{what}, processed {walked.files} files.")
        seconds = EACH_SECONDS
    changing.result()
