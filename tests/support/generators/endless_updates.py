"""The same objects written over and over, with compaction as the server does it: by how much does
the store's file grow?

Job: for the test that bounds it and for `make bench-store`.
"""

import asyncio
from pathlib import Path

from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import all_of
from sampan.store.open import open_store


@dataclass(frozen=True, slots=True)
class Load:
    updates: int
    objects: int = 1000
    value_bytes: int = 1000
    writers: int = 100  # at once
    interval: int = 10_000  # updates between two compactions; each takes what is older than one


@dataclass(frozen=True, slots=True)
class Outcome:
    rate: float  # updates per second
    largest_bytes: int  # of the file and its write-ahead log together, at any time
    last_bytes: int  # after closing


def bound_bytes(load: Load) -> int:
    """What the file may grow to: every value that is kept (the living ones and two intervals of
    history), a row's own fields and what is free in its pages, up to a quarter of free pages that
    wait to be used again, and the write-ahead log. Nothing in it grows with the updates."""
    kept = load.objects + 2 * load.interval
    row = load.value_bytes * 1.35 + 200
    log_bytes = 2 * 16 * 1024 * 1024
    return int(kept * row * 4 / 3) + log_bytes


async def endless_updates(path: Path, load: Load) -> Outcome:
    clock = SystemClock()
    store = await open_store(f"sqlite:///{path}", clock)
    largest, began = 0, clock.monotonic()

    async def write(number: int) -> None:
        keys = [f"/o/{item}" for item in range(number, load.objects, load.writers)]
        revisions = [await store.create(key, bytes(load.value_bytes)) for key in keys]
        for turn in range(load.updates // load.writers):
            at = turn % len(keys)
            value = turn.to_bytes(8) * (load.value_bytes // 8)
            revisions[at] = await store.update(keys[at], value, revisions[at])

    async def compact(done: asyncio.Event) -> None:
        nonlocal largest
        before = store.revision
        while not done.is_set():
            await asyncio.sleep(0.01)
            largest = max(largest, size_of(path))
            if store.revision >= before + load.interval:
                older, before = before, store.revision
                await store.compact(older)

    async def all_writes(done: asyncio.Event) -> None:
        await all_of(write(number) for number in range(load.writers))
        done.set()

    over = asyncio.Event()
    try:
        await all_of([all_writes(over), compact(over)])
        rate = load.updates / (clock.monotonic() - began)
        largest = max(largest, size_of(path))
    finally:
        await store.close()
    return Outcome(rate, largest, size_of(path))


def size_of(path: Path) -> int:
    beside = (path, path.with_name(path.name + "-wal"))
    return sum(item.stat().st_size for item in beside if item.exists())
