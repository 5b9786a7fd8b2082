"""A store by its URL.

Job: `memory:`, `sqlite:///relative/path`, `sqlite:////absolute/path`, `etcd://host:port,…/prefix`
    → an opened Store.
"""

from pathlib import Path

from sampan.core.clock import Clock
from sampan.store.contract import Store, StoreError
from sampan.store.memory import MemoryStore
from sampan.store.sqlite import open_sqlite

_FORMS = (
    "use memory:, sqlite:///relative/path, sqlite:////absolute/path or "
    "etcd://host:port,host:port/prefix?cacert=FILE&cert=FILE&key=FILE"
)


class UnknownStore(StoreError):
    """The URL names no store that there is."""


async def open_store(url: str, clock: Clock) -> Store:
    """Raises a StoreError whose text says what to do."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory" if not rest:
            return MemoryStore(clock)
        case "sqlite" if rest.startswith("///") and len(rest) > 3:
            return await open_sqlite(Path(rest[3:]), clock)
        case "etcd" | "etcds" if rest.startswith("//"):
            # gRPC is imported by who uses it only.
            from sampan.store.etcd import open_etcd
            from sampan.store.etcd_url import parse_etcd_url

            return await open_etcd(parse_etcd_url(url), clock)
        case _:
            raise UnknownStore(f"{url!r} is not the URL of a store: {_FORMS}")
