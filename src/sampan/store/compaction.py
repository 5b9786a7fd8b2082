"""Compaction: history that is older than what a watch may resume from is dropped.

Job: every five minutes compact the revision of five minutes ago, as the original does with etcd.
Invariant: whoever is at most one interval behind is never cut off.
Invariant: while nothing is written, the store is not touched.
Owner: one task per store, started by whoever opened it.
"""

from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.store.contract import Store, StoreClosed, StoreError

INTERVAL_SECONDS = 300.0

log = get_logger(__name__)


async def keep_compacted(
    store: Store, clock: Clock, interval_seconds: float = INTERVAL_SECONDS
) -> None:
    """Runs until cancelled or the store is closed."""
    seen = store.revision
    compacted = 0
    while True:
        await clock.sleep(interval_seconds)
        wanted, seen = seen, store.revision
        if wanted == compacted:
            continue
        try:
            await store.compact(wanted)
        except StoreClosed:
            return
        except StoreError as error:
            # A full disk, say: the next round takes this one's part along.
            log.warning("store was not compacted", revision=wanted, error=error)
            continue
        compacted = wanted
        log.debug("store compacted", revision=wanted)
