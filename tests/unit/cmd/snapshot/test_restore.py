import orjson
import pytest

from sampan.cmd.snapshot.restore import new_entries, restore
from sampan.cmd.snapshot.snapshot_file import BadSnapshot
from sampan.store.memory import MemoryStore
from tests.support import virtual_time


def config(name, value):
    meta = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": "99"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": value}}


def data_of(entry):
    return orjson.loads(entry.value)["data"]["a"]


def test_a_store_becomes_equal_and_its_revisions_only_grow():
    async def story():
        store = MemoryStore(virtual_time.LoopClock())
        await restore(store, [config("kept", "1"), config("changed", "1"), config("gone", "1")])
        await store.create("/registry/masterleases/10.0.0.1", b"another server")
        kept = await store.get("/registry/configmaps/n/kept")
        before = store.revision
        wanted = [config("kept", "1"), config("changed", "2"), config("new", "1")]
        assert await restore(store, wanted) == 3
        found = {entry.key: entry for entry in (await store.range("/registry/configmaps/")).entries}
        values = {key.rpartition("/")[2]: data_of(entry) for key, entry in found.items()}
        assert values == {"kept": "1", "changed": "2", "new": "1"}
        assert found["/registry/configmaps/n/kept"] == kept
        assert found["/registry/configmaps/n/new"].revision > before
        assert b"resourceVersion" not in found["/registry/configmaps/n/new"].value
        assert await store.get("/registry/masterleases/10.0.0.1") is not None
        assert await restore(store, wanted) == 0
        await store.close()

    virtual_time.run(story())


def test_a_store_whose_values_are_encrypted_is_left_alone():
    async def story():
        store = MemoryStore(virtual_time.LoopClock())
        await store.create("/registry/secrets/n/s", b"k8s:enc:aescbc:v1:key:rest")
        with pytest.raises(BadSnapshot, match="encrypted"):
            await restore(store, [config("new", "1")])
        assert [entry.key for entry in (await store.range("/")).entries] == [
            "/registry/secrets/n/s"
        ]
        await store.close()

    virtual_time.run(story())


def test_entries_of_a_new_store_have_the_time_to_live_of_events():
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"}}
    entries = {entry.key: entry for entry in new_entries([config("a", "1"), event], 1000.0)}
    assert entries["/registry/events/n/e"].expires == 4600.0
    assert entries["/registry/configmaps/n/a"].expires is None
    assert data_of(entries["/registry/configmaps/n/a"]) == "1"
