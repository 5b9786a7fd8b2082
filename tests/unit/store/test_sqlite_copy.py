import asyncio

import pytest

from sampan.core.clock import SystemClock
from sampan.store.contract import StoreError
from sampan.store.sqlite import open_sqlite
from sampan.store.sqlite_copy import (
    NewEntry,
    copy_store,
    forget,
    has_value_like,
    living,
    write_store,
)
from sampan.store.sqlite_file import ForeignFile


async def entries(path):
    store = await open_sqlite(path, SystemClock())
    try:
        page = await store.range("/")
        return {entry.key: (entry.value, entry.revision) for entry in page.entries}, store.revision
    finally:
        await store.close()


def test_a_copy_of_a_store_in_use_has_what_was_answered_and_no_more(tmp_path):
    async def go():
        store = await open_sqlite(tmp_path / "a.db", SystemClock())
        first = await store.create("/a", b"1")
        await store.update("/a", b"2", first)
        gone = await store.create("/gone", b"x")
        await store.delete("/gone", gone)
        copy_store(tmp_path / "a.db", tmp_path / "b.db")
        await store.create("/later", b"3")
        await store.close()
        return await entries(tmp_path / "b.db"), await entries(tmp_path / "a.db")

    copied, original = asyncio.run(go())
    assert copied == ({"/a": (b"2", 3)}, 5)
    assert set(original[0]) == {"/a", "/later"}


def test_a_new_file_is_a_store_with_these_values(tmp_path):
    path = tmp_path / "new.db"
    write_store(path, [NewEntry("/a", b"1"), NewEntry("/b", b"2")])
    assert asyncio.run(entries(path)) == ({"/a": (b"1", 2), "/b": (b"2", 3)}, 3)


def test_what_has_a_time_to_live_goes_when_it_is_over(tmp_path):
    path = tmp_path / "new.db"
    write_store(path, [NewEntry("/a", b"1", expires=1.0), NewEntry("/b", b"2")])

    async def left():
        store = await open_sqlite(path, SystemClock())
        watch = store.watch("/", store.revision)
        async with asyncio.timeout(60):
            async for changes in watch:
                assert [change.key for change in changes] == ["/a"]
                break
        await store.close()

    asyncio.run(left())


def test_keys_are_read_and_forgotten_by_prefix(tmp_path):
    path = tmp_path / "new.db"
    write_store(path, [NewEntry("/n/a", b"1"), NewEntry("/n/b", b"2"), NewEntry("/o/c", b"3")])
    assert living(path, "/n/") == {"/n/a": b"1", "/n/b": b"2"}
    assert has_value_like(path, b"3")
    forget(path, "/o/")
    assert not has_value_like(path, b"3")
    assert living(path, "/") == {"/n/a": b"1", "/n/b": b"2"}


def test_what_is_no_store_is_not_copied(tmp_path):
    (tmp_path / "a.db").write_text("a text " * 50)
    with pytest.raises(ForeignFile):
        copy_store(tmp_path / "a.db", tmp_path / "b.db")


def test_a_damaged_file_is_not_copied_in_silence(tmp_path):
    path = tmp_path / "a.db"
    write_store(path, [NewEntry(f"/{number}", b"x" * 3000) for number in range(50)])
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\0" * 4096 + content[8192 : len(content) // 2])

    def use_copy():
        copy_store(path, tmp_path / "b.db")
        living(tmp_path / "b.db", "/")

    with pytest.raises(StoreError):
        use_copy()
