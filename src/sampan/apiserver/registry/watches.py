"""Opening a watch at its resourceVersion.

Job: the initial state or the replay of what is remembered, and live events after it, in one stream.
Invariant: nothing between the initial state and the first live event is lost or seen twice.
"""

import random

from sampan.api.calls import Call
from sampan.api.errors import Expired
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.registry.list_options import (
    check_listing,
    revision_number,
    with_watch_defaults,
)
from sampan.apiserver.registry.reads import wait_for
from sampan.apiserver.registry.selection import Selection
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.watch.cache_watcher import Watcher
from sampan.apiserver.watch.watch_stream import (
    AS_STORED,
    Showing,
    WatchStream,
    WatchTimes,
    bookmark,
)


async def open_watch(
    registry: Registry,
    call: Call,
    selection: Selection,
    settings: ApiServerSettings,
    rng: random.Random,
    showing: Showing = AS_STORED,
) -> WatchStream:
    """Of a start that is older than what is kept the stream tells Expired."""
    check_listing(call)
    options = with_watch_defaults(call.options)
    revision = options.resource_version
    from_now, from_state = revision in ("", "0"), options.send_initial_events
    if from_state or from_now:
        await wait_for(registry, revision)
    cache, kind = registry.cache, registry.kind(call.resource)
    # From here to the return there is no await: state, replay and live events join seamlessly.
    after = cache.revision if from_state or from_now else revision_number(revision)
    watcher = Watcher(call.namespace, selection.matches, after, settings.watcher_buffer_events)
    if from_state:
        watcher.begin_with(kind.select(call.namespace, selection.matches))
        if options.allow_bookmarks:
            watcher.put([bookmark(call, cache.revision, showing.empty(), initial_end=True)])
    else:
        try:
            kind.replay(watcher, after)
        except Expired as error:
            watcher.failure = error
    lifetime = float(options.timeout_seconds) or settings.watch_timeout_seconds * (
        1.0 + rng.random()
    )
    with kind.watch(watcher, selection.trigger, selection.trigger_getter) as hold:
        times = WatchTimes(lifetime, settings.watch_bookmark_seconds)
        stream = WatchStream(cache, kind, call, watcher, times, showing)
        hold.commit()  # from now on whoever has the stream closes it
    return stream
