"""resource.k8s.io/v1beta1, whose fields lie elsewhere than those of v1."""

from sampan.api.device_versions import (
    claim_from_v1,
    claim_to_v1,
    slice_from_v1,
    slice_to_v1,
    template_from_v1,
    template_to_v1,
)

FLAT = {
    "spec": {
        "devices": {
            "requests": [
                {"name": "one", "deviceClassName": "gpu", "count": 2, "selectors": [{}]},
                {
                    "name": "any",
                    "deviceClassName": "",
                    "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}],
                },
            ],
            "constraints": [{"matchAttribute": "a/b"}],
        }
    }
}
EXACT = {
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "one",
                    "exactly": {"deviceClassName": "gpu", "count": 2, "selectors": [{}]},
                },
                {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]},
            ],
            "constraints": [{"matchAttribute": "a/b"}],
        }
    }
}


def test_a_request_for_one_class_says_so_itself_in_v1beta1():
    assert claim_to_v1(FLAT) == EXACT
    assert claim_from_v1(EXACT) == FLAT
    assert template_to_v1({"spec": FLAT}) == {"spec": EXACT}
    assert template_from_v1({"spec": EXACT}) == {"spec": FLAT}


def test_a_device_is_basic_in_v1beta1():
    flat = {"spec": {"driver": "d", "devices": [{"name": "a", "basic": {"attributes": {"x": {}}}}]}}
    plain = {"spec": {"driver": "d", "devices": [{"name": "a", "attributes": {"x": {}}}]}}
    assert slice_to_v1(flat) == plain
    assert slice_from_v1(plain) == flat


def test_what_is_not_there_stays_so():
    for change in (claim_to_v1, claim_from_v1, template_to_v1, slice_to_v1, slice_from_v1):
        for obj in ({}, {"spec": None}, {"spec": {"devices": None}}, {"spec": {"devices": {}}}):
            assert change(obj) == obj
