"""Waiting for informers' caches to sync: for required ones without end, for others a while.

Job: return when a part may begin; say once which kind it waits for, and that it waits no longer.
Invariant: every kind that is needed is whole in its cache; a kind that the server refuses, lacks or
    is slow to show holds up only who needs it.
"""

import asyncio
from collections.abc import Iterable

from sampan.client.informer import Informer
from sampan.core.log import get_logger

log = get_logger(__name__)

# As upstream's garbage collector: then it goes on with what there is.
OPTIONAL_SECONDS = 30.0


async def caches_of(who: str, needed: Iterable[Informer], optional: Iterable[Informer]) -> None:
    """`who`: the part, as the log names it."""
    needed = list(needed)
    optional = [informer for informer in optional if informer not in needed]
    try:
        async with asyncio.timeout(OPTIONAL_SECONDS):
            for informer in (*needed, *optional):
                await informer.answered()
    except TimeoutError:
        pass
    for informer in optional:
        if not informer.is_synced():
            _say("beginning without a kind", who, informer)
    for informer in needed:
        if not informer.is_synced():
            _say("waiting for a required resource", who, informer)
            await informer.synced()
            log.info(
                "required resource is served now", part=who, kind=informer.resource.group_resource
            )


def _say(sentence: str, who: str, informer: Informer) -> None:
    kind = informer.resource.group_resource
    log.warning(sentence, part=who, kind=kind, error=informer.refusal or "no answer yet")
