"""Certificates are renewed while the cluster runs.

Job: look twice a day; make anew what is old, and have the TLS contexts use it.
Invariant: connections that are open stay open; new ones see the new certificate.
"""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from sampan.cmd.cluster import pki
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

EVERY_SECONDS = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class Served:
    """A context and the leaf that it shows."""

    context: ssl.SSLContext
    file: str


async def keep_fresh(
    root: Path,
    leaves: Sequence[pki.Leaf],
    served: Callable[[], Sequence[Served]],
    renewed: Callable[[], None],
    clock: Clock,
) -> None:
    """Until cancelled. `renewed` is told when something was made."""
    while True:
        await clock.sleep(EVERY_SECONDS)
        if renew(root, leaves, served(), clock):
            renewed()


def renew(root: Path, leaves: Sequence[pki.Leaf], served: Sequence[Served], clock: Clock) -> bool:
    made = pki.ensure(root, leaves, clock)
    if not made:
        return False
    where = pki.Pki(root)
    for item in served:
        item.context.load_cert_chain(where.certificate(item.file), where.key(item.file))
    log.info("certificates renewed", count=made)
    return True
