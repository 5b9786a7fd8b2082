"""Memory of the API server, for the memory report.

Job: say to the table of memory what the server keeps, kind by kind.
"""

from collections.abc import Iterable

from sampan.api.resources import EVENTS, LEASES, NODES, PODS
from sampan.apiserver.watch.watch_cache import KindCache, WatchCache
from sampan.core.metrics import Metrics
from sampan.store.contract import Store

# Of these there are many where a cluster is large.
_APART = {
    "pods": (PODS.storage_prefix,),
    "events": (EVENTS.storage_prefix,),
    "nodes and leases": (NODES.storage_prefix, LEASES.storage_prefix),
}


def weigh_server(metrics: Metrics, server: object, store: Store, cache: WatchCache) -> None:
    """`server`: what it has besides is the last to be weighed."""
    table = metrics.memory
    named = {prefix for prefixes in _APART.values() for prefix in prefixes}

    def kinds(prefixes: Iterable[str]) -> list[KindCache]:
        return [found for name in prefixes if (found := cache.kinds().get(name)) is not None]

    def others() -> list[str]:
        return [name for name in cache.kinds() if name not in named]

    def objects(name: str, prefixes: Iterable[str] | None) -> None:
        def of() -> list[KindCache]:
            return kinds(others() if prefixes is None else prefixes)

        table.add(
            f"API objects: {name}",
            lambda: [root for kind in of() for root in kind.kept()],
            count=lambda: sum(map(len, of())),
            keeps_objects=True,
        )

    for name, prefixes in _APART.items():
        objects(name, prefixes)
    objects("others", None)
    table.add(
        "API changes of late",
        lambda: [root for kind in cache.kinds().values() for root in kind.history()],
        count=lambda: sum(len(kind.window()) for kind in cache.kinds().values()),
        keeps_objects=True,
        apart=lambda: [kind.window() for kind in cache.kinds().values()],
    )
    table.add("store", lambda: [store])
    table.add("traces", lambda: [metrics.traces])
    table.add("metrics", lambda: [metrics])
    table.add("API server, the rest", lambda: [server])
