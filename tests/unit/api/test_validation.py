"""The entry points of validation."""

from sampan.api.resources import CONFIG_MAPS, PODS, Resource
from sampan.api.validation import validate_create, validate_status_update, validate_update

BOATS = Resource("example.com", "v1", "Boat", "boats")
BOAT = {"metadata": {"name": "b", "namespace": "d", "finalizers": ["mine"], "resourceVersion": "1"}}


def causes(errors):
    return [str(one) for one in errors]


def test_a_custom_resource_is_judged_by_its_metadata_alone():
    """[A6]"""
    assert validate_create(BOATS, BOAT) == []
    assert validate_update(BOATS, BOAT, BOAT) == []
    nameless = {"metadata": {"namespace": "d"}}
    assert causes(validate_create(BOATS, nameless)) == [
        "metadata.name: Required value: name or generateName is required"
    ]


def test_a_built_in_kind_has_finalizers_of_known_or_qualified_names():
    assert causes(validate_create(CONFIG_MAPS, BOAT)) == [
        'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name'
        " nor is it fully qualified"
    ]


def test_an_object_of_another_shape_is_refused_with_a_cause():
    for judged in (
        validate_create(PODS, {"metadata": {"name": "p", "namespace": "d"}, "spec": []}),
        validate_create(
            PODS, {"metadata": {"name": 5, "namespace": "d"}, "spec": {"containers": 7}}
        ),
        validate_update(PODS, {"metadata": 3}, {"metadata": {}}),
        validate_status_update(PODS, {"status": {"conditions": [3]}}, {}),
    ):
        assert judged
