import asyncio

import pytest

from sampan.core.clock import SystemClock
from sampan.store.memory import MemoryStore
from sampan.store.open import UnknownStore, open_store
from sampan.store.sqlite import SqliteStore


def opened(url):
    async def main():
        store = await open_store(url, SystemClock())
        await store.close()
        return type(store)

    return asyncio.run(main())


def test_memory_and_sqlite_urls_open_their_stores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert opened("memory:") is MemoryStore
    assert opened("sqlite:///beside.db") is SqliteStore
    assert opened(f"sqlite:///{tmp_path}/far.db") is SqliteStore
    assert {"beside.db", "far.db"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "url", ["", "store.db", "sqlite:", "sqlite://a.db", "sqlite:///", "memory:x"]
)
def test_any_other_url_is_refused_with_the_forms_that_there_are(url):
    with pytest.raises(UnknownStore, match="sqlite:///relative/path"):
        opened(url)


def test_etcd_is_refused_as_not_supported_yet():
    with pytest.raises(UnknownStore, match="not supported yet"):
        opened("etcd://127.0.0.1:2379")
