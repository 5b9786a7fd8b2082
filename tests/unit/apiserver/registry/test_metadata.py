from sampan.apiserver.registry.metadata import bump_generation, prepare_created, prepare_updated


def test_a_new_object_gets_its_identity_from_the_server():
    obj = {"metadata": {"name": "x", "uid": "mine", "generation": 9, "deletionTimestamp": "t"}}
    prepare_created(obj, "u1", 0.0, True)
    assert obj["metadata"] == {
        "name": "x", "uid": "u1", "creationTimestamp": "1970-01-01T00:00:00Z", "generation": 1,
    }  # fmt: skip


def test_an_update_cannot_change_what_is_the_servers():
    old = {"metadata": {
        "uid": "u", "resourceVersion": "5", "creationTimestamp": "t", "generation": 2,
        "deletionTimestamp": "d", "deletionGracePeriodSeconds": 30,
    }}  # fmt: skip
    new = {"metadata": {"generation": 7, "labels": {"a": "b"}, "deletionGracePeriodSeconds": 1}}
    prepare_updated(new, old)
    assert new["metadata"] == {**old["metadata"], "labels": {"a": "b"}}


def test_generation_follows_everything_but_metadata_and_status():
    old = {"metadata": {"generation": 3}, "spec": {"a": 1}, "status": {}}
    new = {"metadata": {"generation": 3}, "spec": {"a": 1}, "status": {"b": 1}}
    bump_generation(new, old)
    assert new["metadata"]["generation"] == 3
    bump_generation({**new, "spec": {"a": 2}}, old)
    assert new["metadata"]["generation"] == 4
