from sampan.api.errors import Forbidden, TooManyRequests
from sampan.api.resources import CONFIG_MAPS, STORAGE_VERSION_MIGRATIONS
from sampan.controllers.actions import Outcome
from sampan.controllers.cluster.storage_version_migrator import (
    Stored,
    chosen,
    finished,
    running_message,
    written_anew,
)


def migration(name, *true, created="2024-01-01T00:00:00Z"):
    conditions = [{"type": kind, "status": "True"} for kind in true]
    meta = {"name": name, "uid": name, "creationTimestamp": created}
    return {"metadata": meta, "spec": {}, "status": {"conditions": conditions}}


def written(error=None):
    """The conditions after two of three objects were looked at, the second with this error."""
    stored = [Stored("default", name, revision) for name, revision in (("a", 1), ("b", 5))]
    of = (STORAGE_VERSION_MIGRATIONS, migration("m", "Running"), CONFIG_MAPS)
    plan = written_anew(*of, [*stored, Stored("default", "new", 9)], 5, 0.0)
    first, second = plan.actions
    [patch] = plan.then([Outcome(first), Outcome(second, error=error)])
    return {each["type"]: each["message"] for each in patch.patch["status"]["conditions"]}


def test_the_oldest_begins_where_none_runs():
    old, new = migration("z"), migration("a", created="2024-01-02T00:00:00Z")
    assert chosen([new, old]) == ([], None, old)
    running = migration("r", "Running")
    assert chosen([new, running, old]) == ([], running, None)
    ended = migration("e", "Running", "Failed")
    assert chosen([ended, migration("done", "Succeeded")]) == ([ended], None, None)


def test_objects_that_are_newer_than_the_migration_are_left_alone():
    assert written() == {
        "Running": "The migration is running, 3 objects verified migrated",
        "Succeeded": "Migration completed",
    }


def test_a_refusal_ends_a_migration_and_a_busy_server_does_not():
    assert written(Forbidden("no")) == {
        "Running": "The migration is running, 1/3 objects not yet migrated",
        "Failed": "1/3 not yet migrated. migration encountered unhandled error: no",
    }
    assert written(TooManyRequests("busy")) == {
        "Running": "The migration is running, 1/3 objects not yet migrated; transient error: busy"
    }
    assert running_message(0, 0, None) == "The migration is running"


def test_a_definition_that_changed_meanwhile_keeps_its_stored_versions():
    versions = [{"name": "v1"}, {"name": "v2", "storage": True}]
    condition = {"type": "StorageMigrating", "status": "True", "observedGeneration": 1}
    body = {"spec": {"versions": versions}, "status": {"conditions": [condition]}}
    for generation, stored in ((1, ["v2"]), (2, None)):
        meta = {"name": "boats.example.com", "uid": "u", "generation": generation}
        patch = finished({**body, "metadata": meta}, True, 0.0).patch
        assert patch["status"].get("storedVersions") == stored
