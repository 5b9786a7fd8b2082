import orjson

from sampan.cmd.snapshot.restore import restore
from sampan.store.memory import MemoryStore
from sampan.testing import virtual_time


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
