"""Where a pod's cgroup is and what it may use [N16]."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.cgroups.limits import (
    SHARES_MAX,
    SHARES_MIN,
    PodBounds,
    pod_cgroup,
    pod_limits,
    root_of,
    settings_v1,
    settings_v2,
    weight_of,
)


def pod(*resources, **spec):
    containers = [{"name": f"c{n}", "resources": one} for n, one in enumerate(resources)]
    return {"metadata": {"uid": "u1"}, "spec": {"containers": containers, **spec}}


FULL = {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "500m", "memory": "64Mi"}}
SOME = {"requests": {"cpu": "250m"}}


def test_the_folder_tells_the_quality_of_service():
    assert pod_cgroup(pod(FULL), "/r") == "/r/kubepods/podu1"
    assert pod_cgroup(pod(FULL, SOME), "/r") == "/r/kubepods/burstable/podu1"
    assert pod_cgroup(pod({}), "/r") == "/r/kubepods/besteffort/podu1"
    assert pod_cgroup(pod({}), "") == ""


def test_limits_are_the_sum_and_there_are_none_if_one_container_has_none():
    both = pod_limits(pod(FULL, FULL))
    assert (both.cpu_shares, both.cpu_quota, both.memory_bytes) == (1024, 100_000, 128 << 20)
    open_ended = pod_limits(pod(FULL, SOME))
    assert (open_ended.cpu_shares, open_ended.cpu_quota, open_ended.memory_bytes) == (768, 0, 0)
    assert pod_limits(pod({})).cpu_shares == SHARES_MIN


def test_the_pods_own_limits_hold_whatever_its_containers_say():
    limited = pod_limits(pod({}, resources={"limits": {"cpu": "1", "memory": "1Gi"}}))
    assert (limited.cpu_quota, limited.memory_bytes) == (100_000, 1 << 30)


def test_an_init_container_without_a_limit_leaves_the_pod_without():
    with_init = pod(FULL, initContainers=[{"name": "i", "resources": {}}])
    assert pod_limits(with_init).memory_bytes == 0
    with_init["spec"]["initContainers"][0]["resources"] = {"limits": {"memory": "96Mi"}}
    assert pod_limits(with_init).memory_bytes == 96 << 20


def test_hugepages_and_pids_are_written_as_the_kernel_spells_them():
    huge = {"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi", "cpu": "1"}}
    limits = pod_limits(pod(huge), PodBounds(pids=100))
    v1 = {one.file: one.value for one in settings_v1(limits)}
    assert v1["hugetlb.2MB.limit_in_bytes"] == str(4 << 20)
    assert v1["pids.max"] == "100"
    assert v1["memory.limit_in_bytes"] == str(1 << 30)
    v2 = {one.file: one.value for one in settings_v2(limits)}
    assert v2["cpu.max"] == "100000 100000"
    assert v2["memory.max"] == str(1 << 30)
    assert "pids.max" not in {
        one.file for one in settings_v2(pod_limits(pod({}), PodBounds(pids=-1)))
    }


@given(st.integers(SHARES_MIN, SHARES_MAX))
def test_every_share_has_a_weight(shares):
    assert 1 <= weight_of(shares) <= 10_000


def test_weights_are_those_of_runc():
    assert [weight_of(one) for one in (2, 1024, 262_144)] == [1, 39, 10_000]


def test_two_data_directories_do_not_share_a_root():
    assert root_of(Path("/a")) != root_of(Path("/b"))


def test_a_node_may_keep_no_quotas():
    assert pod_limits(pod(FULL), PodBounds(quota=False)).cpu_quota == 0
