"""The health of devices in the status of the container that has them."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.kubelet.dra.claim_health import health_of_claims
from sampan.kubelet.dra.claim_infos import ClaimInfo, PreparedDevice

DEVICES = (
    PreparedDevice("pool", "a", ("big",), ("vendor/gpu=a",)),
    PreparedDevice("pool", "b", ("small",)),
    PreparedDevice("pool", "b", ("small",)),
)
INFOS = {
    ("ns", "made-x1"): ClaimInfo("u1", "made-x1", "ns", drivers={"d": DEVICES}),
    ("ns", "shared"): ClaimInfo("u2", "shared", "ns", drivers={"d": DEVICES[:1]}),
}
HEALTH = {"a": ("Healthy", ""), "b": ("Unhealthy", "too hot")}
A = {"resourceID": "vendor/gpu=a", "health": "Healthy"}
B = {"resourceID": "d/pool/b", "health": "Unhealthy"}
TOLD = {**B, "message": "too hot"}


def shown(*claims):
    pod = {
        "metadata": {"namespace": "ns", "name": "p"},
        "spec": {
            "containers": [{"name": "c", "resources": {"claims": list(claims)}}, {"name": "other"}],
            "resourceClaims": [
                {"name": "own", "resourceClaimTemplateName": "t"},
                {"name": "theirs", "resourceClaimName": "shared"},
            ],
        },
        "status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "made-x1"}]},
    }
    assert health_of_claims(pod, "other", INFOS, lambda *_device: ("", "")) == []
    found = health_of_claims(pod, "c", INFOS, lambda _driver, _pool, name: HEALTH[name])
    return {item["name"]: item["resources"] for item in found}


@pytest.mark.kubernetes("1.37")
def test_it_is_told_by_request_and_each_device_once():
    """[V1] ResourceHealthStatusMessage"""
    assert shown({"name": "own"}) == {"claim:own": [A, TOLD]}
    assert shown({"name": "own", "request": "small"}) == {"claim:own/small": [TOLD]}
    assert shown({"name": "own", "request": "big/first"}) == {"claim:own/big/first": [A]}
    assert shown({"name": "theirs"}) == {"claim:theirs": [A]}
    with features.used(Release("1.37", gates={"ResourceHealthStatusMessage": False})):
        assert shown({"name": "own"}) == {"claim:own": [A, B]}


@pytest.mark.kubernetes("1.35", gates={"ResourceHealthStatus": True})
def test_before_v1_36_it_was_told_of_claims_made_for_the_pod_and_all_their_devices():
    assert shown({"name": "own", "request": "big"}) == {"claim:own/big": [A, B, B]}
    assert shown({"name": "theirs"}) == {}
