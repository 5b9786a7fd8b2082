"""Bits that flip and pages that tear in a store's file: told, and recovered from a snapshot."""

import asyncio
import shutil
from collections import Counter

import pytest

from sampan.cmd.snapshot import snapshot_file
from sampan.cmd.snapshot.restore import restore
from sampan.cmd.snapshot.snapshot_file import BadSnapshot, Snapshot
from sampan.core.clock import SystemClock
from sampan.store.contract import StoreError
from sampan.store.open import open_store
from sampan.store.sqlite_file import examine
from tests.support.seed import drawn

pytestmark = [pytest.mark.slow]
OBJECTS, FLIPS, TORN, PAGE = 200, 200, 60, 4096
ROOT = "/registry/"


def config(rng, number):
    metadata = {"name": f"c{number}", "namespace": "default"}
    data = {"k": rng.randbytes(rng.choice([50, 300, 3000])).hex()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def with_store(path, work):
    store = await open_store(f"sqlite:///{path}", SystemClock())
    try:
        return await work(store)
    finally:
        await store.close()


async def everything(store):
    """As a start and its first watchers read it."""
    page = await store.range(ROOT)
    for entry in page.entries:
        assert await store.get(entry.key) == entry
    return {entry.key: entry.value for entry in page.entries}


@pytest.fixture
def written(tmp_path):
    """A closed store, what is in it, and a snapshot of the same objects."""
    rng, path = drawn(), tmp_path / "store.db"
    objects = [config(rng, number) for number in range(OBJECTS)]
    asyncio.run(with_store(path, lambda store: restore(store, objects)))
    snapshot_file.write(tmp_path / "good.snapshot", Snapshot(objects))
    return path, asyncio.run(with_store(path, everything))


def flipped(rng, content):
    at = rng.randrange(len(content) * 8)
    content[at // 8] ^= 1 << at % 8


def torn(rng, content):
    """Half of a page is of another time: here, of nothing."""
    at = rng.randrange(len(content) // PAGE) * PAGE
    half = rng.choice([0, PAGE // 2])
    content[at + half : at + half + PAGE // 2] = bytes(PAGE // 2)


def outcome(path, before):
    """What a cluster on that file comes to know."""
    try:
        found = asyncio.run(with_store(path, everything))
    except StoreError:
        return "told"
    if found == before:
        return "unhurt"
    with pytest.raises(StoreError, match="restore it from a copy"):
        examine(path)
    return "told by a check"


@pytest.mark.parametrize(("damage", "times"), [(flipped, FLIPS), (torn, TORN)])
def test_damage_is_told_and_never_served(written, tmp_path, damage, times):
    path, before = written
    rng, whole, counted = drawn(), path.read_bytes(), Counter()
    for number in range(times):
        place = tmp_path / f"damaged-{number}"
        place.mkdir()
        content = bytearray(whole)
        damage(rng, content)
        (place / "store.db").write_bytes(content)
        counted[outcome(place / "store.db", before)] += 1
        shutil.rmtree(place)
    assert counted["told"] > times / 4
    assert counted["told by a check"] < times / 20


def test_a_damaged_store_is_moved_away_and_restored_from_a_snapshot(written, tmp_path):
    path, before = written
    content = bytearray(path.read_bytes())
    for at in range(PAGE * 4, len(content), PAGE):
        content[at + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        asyncio.run(with_store(path, everything))
    path.rename(tmp_path / "damaged.db")
    objects = snapshot_file.read(tmp_path / "good.snapshot").objects
    asyncio.run(with_store(path, lambda store: restore(store, objects)))
    assert asyncio.run(with_store(path, everything)) == before


def test_a_snapshot_with_a_flipped_bit_is_refused_or_unhurt(written, tmp_path):
    rng, place = drawn(), tmp_path / "good.snapshot"
    whole = place.read_bytes()
    before = list(snapshot_file.read(place).objects)
    refused = 0
    for _ in range(FLIPS):
        content = bytearray(whole)
        flipped(rng, content)
        place.write_bytes(content)
        try:
            found = snapshot_file.read(place).objects
        except BadSnapshot:
            refused += 1
        else:
            assert list(found) == before
    assert refused > FLIPS * 0.9
