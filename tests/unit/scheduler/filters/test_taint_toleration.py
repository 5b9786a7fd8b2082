import pytest
from hypothesis import given, settings

from sampan.scheduler.filters.taint_toleration import TAINT_TOLERATION
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


def tolerates(toleration, taint):
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return toleration.get("value", "") == taint.get("value", "")


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_every_hard_taint_must_be_tolerated(cluster, pod):
    mask = TAINT_TOLERATION.mask(pod_info_of(pod).shape, snapshot_of(cluster))
    expected = [
        all(
            any(tolerates(toleration, taint) for toleration in pod["spec"]["tolerations"])
            for taint in node["spec"]["taints"]
            if taint["effect"] != "PreferNoSchedule"
        )
        for node in cluster[0]
    ]
    assert expected == ([True] * len(expected) if mask is None else mask.tolist())
