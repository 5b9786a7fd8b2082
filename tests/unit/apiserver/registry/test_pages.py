import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.calls import Item
from sampan.apiserver.registry.pages import Wanted, cached_page, stored_page
from sampan.apiserver.watch.watch_cache import KindCache
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

PREFIX = "/registry/things/"
KEYS = st.sets(st.builds("{}/{}".format, st.sampled_from("abc"), st.integers(0, 20)))
MATCHES = st.sampled_from([None, lambda item: item.key.endswith(("1", "3", "7"))])
WHERE = st.sampled_from(["", "a", "b"])


def item(key):
    return Item(key, 1, {}, b"{}")


class ReadStore(MemoryStore):
    """Counts what is read."""

    read = 0

    async def range(self, prefix, *, start="", limit=0, revision=0):
        page = await super().range(prefix, start=start, limit=limit, revision=revision)
        self.read += len(page.entries)
        return page


async def all_pages(page, namespace, most, matches):
    start, items, counts = "", [], []
    while True:
        found = await page(Wanted(namespace, start, most, matches))
        items += found.items
        counts.append(found.left)
        if not found.left:
            return [found.key for found in items], counts
        start = items[-1].key + "\0"


def expected(keys, namespace, matches):
    inside = sorted(key for key in keys if not namespace or key.startswith(namespace + "/"))
    return [key for key in inside if matches is None or matches(item(key))]


async def stored(keys, unreadable=()):
    store = ReadStore(LoopClock())
    for key in sorted(keys):
        await store.create(
            PREFIX + key, b'{"apiVersion":"v1","kind":"Thing","metadata":{"name":"x"}}'
        )
    for key in unreadable:
        await store.create(PREFIX + key, b"no object")
    return store


@settings(max_examples=30)
@given(KEYS, KEYS, WHERE, st.integers(0, 5), MATCHES)
def test_what_cannot_be_read_is_in_no_page_and_ends_none(keys, others, namespace, most, matches):
    async def run():
        store = await stored(keys, others - keys)

        async def past(wanted):
            return await stored_page(store, PREFIX, KindCache(0), wanted, store.revision)

        found, _ = await all_pages(past, namespace, most, matches)
        assert found == expected(keys, namespace, matches)

    virtual_time.run(run())


@given(KEYS, WHERE, st.integers(0, 5), MATCHES)
def test_the_pages_are_the_list(keys, namespace, most, matches):
    async def run():
        kind = KindCache(0)
        kind.load([item(key) for key in keys], 1)
        store = await stored(keys)
        wanted = expected(keys, namespace, matches)

        async def past(wanted):
            return await stored_page(store, PREFIX, KindCache(0), wanted, store.revision)

        for page in (lambda wanted: cached_page(kind, wanted), past):
            found, counts = await all_pages(page, namespace, most, matches)
            assert found == wanted
            if matches is None and most:
                assert counts == [
                    max(len(wanted) - most * number, 0) for number in range(1, len(counts) + 1)
                ]

    virtual_time.run(run())


@pytest.mark.parametrize("matches", [None, lambda item: True])
def test_all_pages_together_read_the_past_about_once(matches):
    async def run():
        keys = [f"a/{number:04d}" for number in range(400)]
        store = await stored(keys)

        async def past(wanted):
            return await stored_page(store, PREFIX, KindCache(0), wanted, store.revision)

        found, _ = await all_pages(past, "a", 20, matches)
        assert found == keys
        assert store.read <= 2 * len(keys)

    virtual_time.run(run())
