"""allocatedResourcesStatus of containers."""

from sampan.kubelet.status.resource_health import with_resource_health

SICK = [{"name": "x/gpu", "resources": [{"resourceID": "a", "health": "Unhealthy"}]}]


def told(health, before=()):
    pod = {"status": {"containerStatuses": [*before]}}
    status = {"phase": "Running", "containerStatuses": [{"name": "c"}, {"name": "d"}]}
    return with_resource_health(pod, status, lambda _pod, name: health.get(name, []))


def test_what_a_container_has_is_told_with_its_health():
    """[H2]"""
    assert told({"c": SICK}) == {
        "phase": "Running",
        "containerStatuses": [{"name": "c", "allocatedResourcesStatus": SICK}, {"name": "d"}],
    }


def test_who_has_nothing_is_told_nothing():
    assert told({})["containerStatuses"] == [{"name": "c"}, {"name": "d"}]
    assert with_resource_health({}, {"phase": "Pending"}, lambda *_: SICK) == {"phase": "Pending"}


def test_the_last_word_stays_when_the_devices_are_given_back():
    before = [{"name": "c", "allocatedResourcesStatus": SICK}]
    shown = told({}, before)["containerStatuses"]
    assert shown[0]["allocatedResourcesStatus"] == SICK
