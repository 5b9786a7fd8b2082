import pytest

from sampan.api.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICES,
)
from sampan.api.rules.quota import (
    counted_resource,
    counts,
    is_measured_by,
    taking_of,
    total_of,
    usage_of,
)


def shown(usage):
    return {name: str(amount) for name, amount in usage.items()}


def test_a_service_counts_itself_its_ports_and_its_balancer():
    service = {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}}
    assert shown(usage_of(SERVICES, service)) == {
        "count/services": "1",
        "services": "1",
        "services.loadbalancers": "1",
        "services.nodeports": "2",
    }
    service["spec"]["allocateLoadBalancerNodePorts"] = False
    assert "services.nodeports" not in usage_of(SERVICES, service)


def test_a_claim_counts_for_its_class_too():
    claim = {
        "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "3Gi"}}},
    }
    assert shown(usage_of(PERSISTENT_VOLUME_CLAIMS, claim)) == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "3Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "3Gi",
    }


def test_a_claim_to_devices_counts_by_their_classes():
    suffix = ".deviceclass.resource.k8s.io/devices"
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}},
        {"name": "b", "exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
        {
            "name": "c",
            "firstAvailable": [
                {"deviceClassName": "gpu", "count": 1},
                {"deviceClassName": "gpu", "count": 3},
                {"deviceClassName": "tpu", "count": 1},
            ],
        },
    ]
    claim = {"spec": {"devices": {"requests": requests}}}
    assert shown(usage_of(RESOURCE_CLAIMS, claim)) == {
        "count/resourceclaims.resource.k8s.io": "1",
        f"gpu{suffix}": "5",
        f"nic{suffix}": "32",
        f"tpu{suffix}": "1",
    }
    assert is_measured_by(f"gpu{suffix}", RESOURCE_CLAIMS)


def test_other_kinds_are_counted():
    assert shown(usage_of(DEPLOYMENTS, {})) == {"count/deployments.apps": "1"}
    assert shown(usage_of(CONFIG_MAPS, {})) == {"count/configmaps": "1", "configmaps": "1"}
    assert counted_resource("count/deployments.apps") == ("deployments", "apps")
    assert counted_resource("requests.cpu") is None
    quota = {"spec": {"hard": {"count/deployments.apps": "9", "pods": "9"}}}
    three = total_of(quota, DEPLOYMENTS, {taking_of(DEPLOYMENTS, {}): 3})
    assert shown(three) == {"count/deployments.apps": "3"}


def test_scopes_choose_pods():
    short = {"spec": {"activeDeadlineSeconds": 5, "containers": [{}]}}
    long = {"spec": {"containers": [{}], "priorityClassName": "high"}}
    terminating = {"spec": {"scopes": ["Terminating"]}}
    assert counts(terminating, PODS, short)
    assert not counts(terminating, PODS, long)
    assert not counts(terminating, CONFIG_MAPS, {})
    term = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    high = {"spec": {"scopeSelector": {"matchExpressions": [term]}}}
    assert counts(high, PODS, long)
    assert not counts(high, PODS, short)
    assert counts({"spec": {"scopes": ["BestEffort"]}}, PODS, long)


def test_affinity_across_namespaces_is_a_scope():
    term = {"topologyKey": "zone", "namespaces": ["other"]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    pod = {"spec": {"containers": [{}], "affinity": {"podAntiAffinity": rule}}}
    quota = {"spec": {"scopes": ["CrossNamespacePodAffinity"]}}
    assert counts(quota, PODS, pod)
    assert not counts(quota, PODS, {"spec": {"containers": [{}]}})


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("count/deployments.apps", DEPLOYMENTS),
        ("count/pods", PODS),
        ("pods", PODS),
        ("limits.cpu", PODS),
        ("requests.example.com/gpu", PODS),
        ("services.nodeports", SERVICES),
        ("services", SERVICES),
        ("secrets", SECRETS),
        ("persistentvolumeclaims", PERSISTENT_VOLUME_CLAIMS),
        ("requests.storage", PERSISTENT_VOLUME_CLAIMS),
        ("fast.storageclass.storage.k8s.io/requests.storage", PERSISTENT_VOLUME_CLAIMS),
    ],
)
def test_every_name_is_measured_by_one_kind(name, resource):
    kinds = (DEPLOYMENTS, PODS, SERVICES, SECRETS, PERSISTENT_VOLUME_CLAIMS)
    assert [kind for kind in kinds if is_measured_by(name, kind)] == [resource]
