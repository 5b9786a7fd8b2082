"""What a container may use, in the kernel's figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.fast_dataclass import replace
from sampan.kubelet.container_spec.linux_resources import (
    NodeResources,
    Swap,
    cpu_quota,
    cpu_shares,
    linux_resources,
)
from sampan.kubelet.contracts.resources_hook import Grants

NODE = NodeResources(8 << 30)


def make_pod(own, **spec):
    container = {"name": "main", "resources": own}
    return {"metadata": {"uid": "1", "name": "p"}, "spec": {"containers": [container], **spec}}


def found(pod, node=NODE, grants=Grants()):  # noqa: B008 (it is frozen)
    return linux_resources(pod, pod["spec"]["containers"][0], node, grants)


@given(st.integers(0, 10**7))
def test_shares_and_quota_stay_in_the_kernel_s_bounds(milli):
    assert 2 <= cpu_shares(milli) <= 262_144
    assert cpu_quota(milli) == 0 if milli == 0 else cpu_quota(milli) >= 1000


def test_a_container_without_a_limit_has_the_pods():
    """[N10] pod-level resources"""
    whole = {"limits": {"cpu": "1", "memory": "1Gi"}}
    limits = found(make_pod({"limits": {"cpu": "200m"}}, resources=whole))
    assert limits.cpu_quota == 20_000
    assert limits.memory_limit_bytes == 1 << 30


def test_huge_pages_are_limited_by_their_size_and_who_asks_for_none_gets_none():
    """[H6]"""
    pod = make_pod({"limits": {"hugepages-2Mi": "4Mi"}})
    assert found(pod).hugepages == {"2MB": 4 << 20}
    node = replace(NODE, page_sizes=("2MB", "1GB"))
    assert found(pod, node).hugepages == {"2MB": 4 << 20, "1GB": 0}
    assert found(make_pod({}), node).hugepages == {"2MB": 0, "1GB": 0}


def test_who_has_processors_of_its_own_is_not_held_back():
    """[H5]"""
    pod = make_pod({"limits": {"cpu": "2"}})
    limits = found(pod, grants=Grants(cpus="2-3", memory_nodes="1", exclusive_cpus=True))
    assert (limits.cpus, limits.memory_nodes, limits.cpu_quota) == ("2-3", "1", -1)
    assert found(pod, grants=Grants(cpus="0,1")).cpu_quota == 200_000


@pytest.mark.parametrize(
    ("resources", "more", "swap", "expected"),
    [
        ({"requests": {"memory": "2Gi"}}, {}, None, None),
        ({"requests": {"memory": "2Gi"}}, {}, Swap(4 << 30), 0),
        ({"requests": {"memory": "2Gi"}}, {}, Swap(4 << 30, limited=True), 1 << 30),
        ({"requests": {"memory": "2Gi"}}, {"priority": 2_000_000_000}, Swap(1, limited=True), 0),
        ({"requests": {"cpu": "1"}}, {}, Swap(4 << 30, limited=True), 0),
        ({}, {}, Swap(4 << 30, limited=True), 0),
        ({"limits": {"memory": "2Gi"}, "requests": {"memory": "2Gi", "cpu": "1"}}, {},
         Swap(4 << 30, limited=True), 0),
        ({"requests": {"memory": "9Gi"}}, {}, Swap(4 << 30, limited=True), 0),
    ],
)  # fmt: skip
def test_swap_is_nobodys_or_shared_by_what_is_asked_for(resources, more, swap, expected):
    """[H6] As upstream's NoSwap and LimitedSwap."""
    assert found(make_pod(resources, **more), replace(NODE, swap=swap)).swap_bytes == expected


def test_what_the_node_says_of_quotas_and_of_ends_by_memory():
    """[N16]"""
    pod = make_pod({"limits": {"cpu": "1", "memory": "64Mi"}})
    without = found(pod, replace(NODE, cpu_quota=False))
    assert without.cpu_quota == without.cpu_period == 0
    assert found(pod).unified == {}
    whole = found(pod, replace(NODE, oom_group=True, swap=Swap(4 << 30)))
    assert whole.unified == {"memory.oom.group": "1", "memory.swap.max": "0"}
