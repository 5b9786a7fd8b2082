"""What client-side apply wrote goes over to the applier, and nothing else does."""

from sampan.cli.objects.server_side import client_side_managers, migrated
from sampan.cli.objects.writing import LAST_APPLIED

ANNOTATION = {"f:metadata": {"f:annotations": {f"f:{LAST_APPLIED}": {}}}}


def entry(manager, operation, fields, version="v1", **more):
    return {
        "manager": manager, "operation": operation, "apiVersion": version,
        "fieldsType": "FieldsV1", "fieldsV1": fields, **more,
    }  # fmt: skip


def test_the_updaters_fields_join_the_appliers():
    applier = entry("kubectl", "Apply", {"f:data": {"f:a": {}}})
    updater = entry("kubectl-client-side-apply", "Update", {"f:data": {"f:b": {}}, **ANNOTATION})
    other = entry("hand", "Update", {"f:data": {"f:c": {}}})
    after = migrated([applier, updater, other], ["kubectl-client-side-apply"], "kubectl")
    joined = {"f:data": {"f:a": {}, "f:b": {}}, **ANNOTATION}
    assert after == [entry("kubectl", "Apply", joined), other]


def test_without_an_applier_the_first_updater_becomes_it():
    first = entry("csa", "Update", {"f:data": {"f:a": {}}})
    second = entry("csa", "Update", {"f:data": {"f:b": {}}}, version="v2")
    after = migrated([first, second], ["csa"], "kubectl")
    assert after == [entry("kubectl", "Apply", {"f:data": {"f:a": {}}})]


def test_what_was_written_to_a_subresource_stays_whose_it_is():
    status = entry("csa", "Update", {"f:status": {}}, subresource="status")
    assert migrated([status], ["csa"], "kubectl") == [status]


def test_entries_of_nobody_who_is_named_are_left_alone():
    entries = [entry("hand", "Update", {"f:data": {}})]
    assert migrated(entries, ["csa"], "kubectl") is entries


def test_the_client_side_managers_are_those_who_hold_the_annotation():
    managed = [
        entry("kubectl-last-applied", "Apply", ANNOTATION),
        entry("helm", "Update", ANNOTATION),
        entry("hand", "Update", {"f:metadata": {"f:annotations": {"f:x": {}}}}),
        {"manager": "odd", "operation": "Update"},
    ]
    assert client_side_managers({"metadata": {"managedFields": managed}}) == ["helm"]
    assert client_side_managers({}) == []
