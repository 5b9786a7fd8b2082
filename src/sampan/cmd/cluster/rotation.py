"""Certificates are renewed while the cluster runs.

Job: look twice a day; make anew what is old, and have the TLS contexts use it. What somebody else
    makes is looked at every minute.
Invariant: connections that are open stay open; new ones see the new certificate.
"""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from sampan.cmd.cluster import pki
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

EVERY_SECONDS = 12 * 3600.0
LOOK_SECONDS = 60.0  # as upstream


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
    made = ensure(root, leaves, clock)
    if not made:
        return False
    where = pki.Pki(root)
    for item in served:
        item.context.load_cert_chain(where.certificate(item.file), where.key(item.file))
    log.info("certificates renewed", count=made)
    return True


async def keep_loaded(context: ssl.SSLContext, pair: tuple[Path, Path], clock: Clock) -> None:
    """Until cancelled: `context` shows the certificate that the files hold, whoever writes them."""
    known = _contents(pair)
    while True:
        await clock.sleep(LOOK_SECONDS)
        found = _contents(pair)
        if found in (known, ()):
            continue
        known = found  # said once, where it is of no use
        try:
            context.load_cert_chain(*pair)
        except (ssl.SSLError, OSError) as error:
            log.error("certificate files unusable", file=pair[0], error=error)
        else:
            log.info("the certificate was loaded again", file=pair[0])


def _contents(pair: tuple[Path, Path]) -> tuple[bytes, ...]:
    """Nothing, while one of them is not there."""
    try:
        return tuple(path.read_bytes() for path in pair)
    except OSError:
        return ()
