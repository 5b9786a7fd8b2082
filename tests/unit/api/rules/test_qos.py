"""QoS classes [N16]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.qos import qos_class


def container(name="c", requests=None, limits=None, **rest):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **rest}


def pod(*containers, init=(), **spec):
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container()], "BestEffort"),
        ([container(requests={"cpu": "1"})], "Burstable"),
        (
            [container(requests={"example.com/gpu": "1"}, limits={"example.com/gpu": "1"})],
            "BestEffort",
        ),
        (
            [
                container(
                    requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}
                )
            ],
            "Guaranteed",
        ),
        (
            [
                container(
                    requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}
                )
            ],
            "Burstable",
        ),
        (
            [
                container(
                    requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}
                ),
                container(),
            ],
            "Burstable",
        ),
        ([container(requests={"cpu": "0"})], "BestEffort"),
    ],
)
def test_quality_of_service_follows_from_requests_and_limits(containers, expected):
    """[N16]"""
    assert qos_class(pod(*containers)) == expected


def test_quality_of_service_looks_at_the_pod_as_a_whole_first():
    amounts = {"cpu": "1", "memory": "1Gi"}
    whole = {"requests": amounts, "limits": amounts}
    assert qos_class(pod(container(), resources=whole)) == "Guaranteed"


EQUAL = {"cpu": "1.5", "memory": "1Gi"}
SPELLED = {"cpu": "1.500", "memory": "1024Mi"}


def test_an_amount_may_be_spelled_in_two_ways():
    assert qos_class(pod(container(requests=EQUAL, limits=SPELLED))) == "Guaranteed"
    assert qos_class(pod(container(), resources={"requests": SPELLED, "limits": EQUAL})) == (
        "Guaranteed"
    )


@pytest.mark.kubernetes("1.37")
def test_pod_level_resources_stand_in_place_of_the_containers():
    asking = container(requests={"cpu": "1"})
    assert qos_class(pod(asking, resources={})) == "Burstable"
    assert qos_class(pod(asking, resources={"limits": {"memory": "1Gi"}})) == "Burstable"


def test_init_containers_count_and_ephemeral_ones_do_not():
    full = container(requests=EQUAL, limits=EQUAL)
    assert qos_class(pod(full, init=[container("i")])) == "Burstable"
    assert qos_class(pod(full, ephemeralContainers=[container("e")])) == "Guaranteed"


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage"]), st.sampled_from(["0", "1", "2"])
)
RESOURCES = st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=3)


@given(RESOURCES)
def test_a_class_is_what_all_containers_say_and_burstable_where_they_differ(resources):
    """The rule again, in the words of the documentation."""

    def amount(written, name):
        return int(written.get(name, "0"))

    named = [
        (amount(requests, name), amount(limits, name))
        for requests, limits in resources
        for name in ("cpu", "memory")
    ]
    if all(pair == (0, 0) for pair in named):
        expected = "BestEffort"
    elif all(request == limit > 0 for request, limit in named):
        expected = "Guaranteed"
    else:
        expected = "Burstable"
    containers = [container(requests=asked, limits=most) for asked, most in resources]
    assert qos_class(pod(*containers)) == expected
