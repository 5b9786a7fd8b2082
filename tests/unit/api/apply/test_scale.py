from sampan.api.apply.managed_fields import in_order
from sampan.api.apply.scale import object_entries, scale_entries, scale_of

REPLICAS = {"f:spec": {"f:replicas": {}}}


def entry(manager, fields, operation="Update", subresource=""):
    made = {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**made, "subresource": subresource} if subresource else made


def test_a_scale_shows_number_and_selector():
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}
    metadata = {"name": "web", "uid": "u", "labels": {"x": "y"}}
    shown = scale_of({"metadata": metadata, "spec": spec, "status": {"replicas": 1}})
    assert shown["metadata"] == {"name": "web", "uid": "u"}
    assert shown["spec"] == {"replicas": 2}
    assert shown["status"] == {"replicas": 1, "selector": "a=b"}
    assert scale_of({"spec": {"replicas": 0, "selector": {"a": "b"}}})["spec"] == {}


def test_owners_of_the_number_go_into_the_scale_and_come_back():
    both = {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    before = in_order(
        [
            entry("maker", both, "Apply"),
            entry("hand", REPLICAS, subresource="scale"),
            entry("other", {"f:metadata": {"f:labels": {}}}),
        ]
    )
    of_scale = scale_entries(before)
    assert [one["manager"] for one in of_scale] == ["maker", "hand"]
    assert {one["apiVersion"] for one in of_scale} == {"autoscaling/v1"}
    assert all(one["fieldsV1"] == REPLICAS for one in of_scale)
    # An updater is known by the version in which it wrote: it comes back as an entry of its own.
    hand = entry("hand", REPLICAS, subresource="scale")
    assert object_entries(before, of_scale, "apps/v1") == in_order(
        [before[0], hand, entry("other", {"f:metadata": {"f:labels": {}}})]
    )


def test_what_comes_back_from_a_scale_has_no_time():
    before = [{**entry("hand", REPLICAS), "time": "2026-01-01T00:00:00Z"}]
    [back] = object_entries(before, scale_entries(before), "apps/v1")
    assert back == entry("hand", REPLICAS)


def test_who_lost_the_number_keeps_the_rest_and_who_won_it_is_there():
    both = {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    before = [entry("maker", both, "Apply"), entry("hand", REPLICAS, subresource="scale")]
    winner = {**entry("scaler", REPLICAS, "Apply", "scale"), "apiVersion": "autoscaling/v1"}
    after = object_entries(before, [winner], "apps/v1")
    assert after == [
        entry("maker", {"f:spec": {"f:paused": {}}}, "Apply"),
        entry("scaler", REPLICAS, "Apply", "scale"),
    ]
