import asyncio
import subprocess
import sys

import pytest

from sampan.core.clock import SystemClock
from sampan.store.contract import StoreError
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


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("etcd:2379", "is not the URL of a store"),
        ("etcd://", "names no etcd"),
        ("etcd://127.0.0.1:1", r"no etcd answers at 127\.0\.0\.1:1: is it running there\?"),
        ("etcds://127.0.0.1:1", "does it speak TLS"),
    ],
)
def test_an_etcd_that_cannot_be_used_is_refused_in_one_sentence(url, why):
    with pytest.raises(StoreError, match=why) as refused:
        opened(url)
    assert "\n" not in str(refused.value)


def test_grpc_is_imported_only_for_etcd():
    script = "import sys, sampan.store.open; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=30).returncode == 0
