"""What pods request and may use [N10]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import quantity
from sampan.api.rules import pod_resources


def container(name="c", requests=None, limits=None, **rest):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **rest}


def pod(*containers, init=(), **spec):
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


def texts(amounts):
    return {name: str(amount) for name, amount in amounts.items()}


def test_containers_run_together_so_their_requests_are_added():
    one = pod(
        container(requests={"cpu": "100m", "memory": "1Gi"}), container(requests={"cpu": "1"})
    )
    assert texts(pod_resources.requests(one)) == {"cpu": "1100m", "memory": "1Gi"}


def test_init_containers_run_one_by_one_so_the_greatest_counts():
    one = pod(
        container(requests={"cpu": "1"}),
        init=[container(requests={"cpu": "3"}), container(requests={"cpu": "2", "memory": "1Mi"})],
    )
    assert texts(pod_resources.requests(one)) == {"cpu": "3", "memory": "1Mi"}


def test_a_sidecar_counts_with_the_containers_and_with_the_init_containers_after_it():
    one = pod(
        container(requests={"cpu": "1"}),
        init=[
            container(requests={"cpu": "4"}),  # before the sidecar: alone
            container(requests={"cpu": "1"}, restartPolicy="Always"),
            container(requests={"cpu": "5"}),  # after it: beside it
        ],
    )
    assert texts(pod_resources.requests(one)) == {"cpu": "6"}


def test_overhead_is_added_to_requests_but_makes_no_limit():
    one = pod(
        container(requests={"cpu": "1"}, limits={"cpu": "2"}),
        overhead={"cpu": "250m", "memory": "10Mi"},
    )
    assert texts(pod_resources.requests(one)) == {"cpu": "1250m", "memory": "10Mi"}
    assert texts(pod_resources.limits(one)) == {"cpu": "2250m"}


def test_what_the_pod_asks_for_as_a_whole_replaces_the_sum():
    one = pod(container(requests={"cpu": "1"}), resources={"requests": {"cpu": "3"}})
    assert texts(pod_resources.requests(one)) == {"cpu": "3"}


def test_quota_counts_requests_limits_and_the_pod_itself():
    one = pod(container(requests={"cpu": "1", "example.com/gpu": "2"}, limits={"cpu": "2"}))
    assert texts(pod_resources.quota_usage(one)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "requests.example.com/gpu": "2",
        "limits.cpu": "2",
    }


def test_a_pod_that_is_over_takes_nothing_of_the_quota_but_its_object():
    one = {**pod(container(requests={"cpu": "1"})), "status": {"phase": "Succeeded"}}
    assert texts(pod_resources.quota_usage(one)) == {"count/pods": "1"}


def test_only_cpu_memory_and_huge_pages_are_asked_for_by_the_pod_as_a_whole():
    whole = {"cpu": "3", "hugepages-2Mi": "4Mi", "ephemeral-storage": "9Gi", "example.com/gpu": "1"}
    one = pod(container(requests={"ephemeral-storage": "1Gi"}), resources={"requests": whole})
    assert texts(pod_resources.requests(one)) == {
        "cpu": "3",
        "hugepages-2Mi": "4Mi",
        "ephemeral-storage": "1Gi",
    }
    capped = pod(container(), resources={"limits": {"memory": "1Gi", "ephemeral-storage": "1Gi"}})
    assert texts(pod_resources.limits(capped)) == {"memory": "1Gi"}


def test_overhead_does_not_raise_a_limit_of_zero():
    one = pod(container(limits={"cpu": "0"}), overhead={"cpu": "250m"})
    assert texts(pod_resources.limits(one)) == {"cpu": "0"}


def held(made, **statuses):
    """The pod, with what its node says of its containers: (running with, allocated)."""
    shown = [
        {"name": name, "allocatedResources": allocated, **({"resources": now} if now else {})}
        for name, (now, allocated) in statuses.items()
    ]
    return made | {"status": {"containerStatuses": shown}}


def with_status(made):
    return texts(pod_resources.held_requests(made, pod_resources.quantities, {}))


def test_while_a_container_is_resized_the_larger_of_old_and_new_counts():
    wish = pod(container(requests={"cpu": "1", "memory": "4Mi"}))
    running = held(wish, c=({"requests": {"cpu": "2", "memory": "1Mi"}}, {"cpu": "1500m"}))
    assert with_status(running) == {"cpu": "2", "memory": "4Mi"}
    assert texts(pod_resources.requests(running)) == {"cpu": "1", "memory": "4Mi"}


def test_an_infeasible_resize_is_only_a_wish():
    one = held(pod(container(requests={"cpu": "64"})), c=({"requests": {"cpu": "2"}}, {"cpu": "2"}))
    one["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert with_status(one) == {"cpu": "2"}
    one["status"]["conditions"][0]["reason"] = "Deferred"
    assert with_status(one) == {"cpu": "64"}


def test_a_status_without_resources_says_nothing_about_them():
    one = held(pod(container(requests={"cpu": "1"})), c=(None, {"cpu": "8"}))
    assert with_status(one) == {"cpu": "1"}


def test_an_init_container_that_ends_holds_nothing_beyond_its_request():
    one = held(
        pod(container(), init=[container("i", requests={"cpu": "1"})]),
        i=({"requests": {"cpu": "5"}}, {"cpu": "5"}),
    )
    assert with_status(one) == {"cpu": "1"}


def test_quota_counts_what_the_node_holds_during_a_resize():
    one = pod(container(requests={"cpu": "1"}, limits={"cpu": "1"}))
    now = {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}
    usage = texts(pod_resources.quota_usage(held(one, c=(now, {"cpu": "2"}))))
    assert (usage["requests.cpu"], usage["limits.cpu"]) == ("2", "3")


def test_a_container_that_says_nothing_may_count_for_something():
    default = {"cpu": quantity.parse("100m")}
    one = pod(container(), container("d", requests={"cpu": "0"}))
    found = pod_resources.held_requests(one, pod_resources.quantities, default)
    assert texts(found) == {"cpu": "100m"}


LIMITED = {"memory": "1Gi"}


@pytest.mark.parametrize(
    ("made", "limited"),
    [
        (pod(container(limits=LIMITED)), True),
        (pod(container(limits=LIMITED), container("d")), False),
        (pod(container(limits={"memory": "0"})), False),
        (pod(container(), resources={"limits": LIMITED}), True),
        (pod(container(limits=LIMITED), init=[container("i")]), False),
        (pod(container(limits=LIMITED), init=[container("i", limits=LIMITED)]), True),
        (pod(container(limits=LIMITED), init=[container("s", restartPolicy="Always")]), False),
    ],
)
def test_a_pod_is_limited_if_it_is_at_every_moment(made, limited):
    assert pod_resources.is_limited(made, "memory") is limited


CPU = st.integers(0, 4000).map(lambda milli: f"{milli}m")
CONTAINERS = st.lists(CPU, min_size=1, max_size=3).map(
    lambda cpus: [container(requests={"cpu": cpu}) for cpu in cpus]
)


@given(CONTAINERS, st.lists(st.tuples(CPU, st.booleans()), max_size=4))
def test_a_pod_never_asks_for_less_than_its_containers_or_any_init_container(usual, init):
    """The total is also what the last moment and each earlier moment need at most."""
    starts = [
        container(requests={"cpu": cpu}, **({"restartPolicy": "Always"} if stays else {}))
        for cpu, stays in init
    ]
    total = pod_resources.requests(pod(*usual, init=starts))["cpu"].milli()
    running, moments = 0, []
    for cpu, stays in init:
        need = quantity.parse(cpu).milli()
        moments.append(running + need)
        running += need if stays else 0
    last = running + sum(
        quantity.parse(one["resources"]["requests"]["cpu"]).milli() for one in usual
    )
    assert total == max([last, *moments])


def test_what_is_described_has_what_a_resize_holds_and_not_what_the_pod_asks_for_as_a_whole():
    one = pod(
        container("c", {"cpu": "1"}, {"cpu": "2"}),
        resources={"requests": {"cpu": "5"}, "limits": {"cpu": "6"}},
    )
    status = {"name": "c", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}
    one["status"] = {"containerStatuses": [status]}
    requested, limited = pod_resources.described_amounts(one)
    assert (texts(requested), texts(limited)) == ({"cpu": "3"}, {"cpu": "2"})
