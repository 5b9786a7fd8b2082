"""Small controllers on the real API, each with its own rights."""

import pytest

from sampan.api.errors import Forbidden, Invalid
from sampan.api.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SERVICE_CIDRS,
    SERVICES,
    VALIDATING_ADMISSION_POLICIES,
)
from sampan.core.tasks import all_of
from tests.support.worlds.control_plane import story

with_all = story(
    [
        "resourcequota-controller",
        "endpointslice-mirroring-controller",
        "ephemeral-volume-controller",
        "validatingadmissionpolicy-status-controller",
        "service-cidr-controller",
        "garbage-collector-controller",
        "persistentvolumeclaim-protection-controller",
    ]
)


def pod(name, **spec):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


@with_all
async def test_a_quota_lets_as_many_in_at_once_as_it_allows(plane):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "24"}},
    }
    await plane.client.create(RESOURCE_QUOTAS, quota)
    await plane.settled()
    # The controller counts while they come: none of them may count twice.
    await all_of(plane.client.create(PODS, pod(f"p-{number}")) for number in range(24))
    with pytest.raises(Forbidden):
        await plane.client.create(PODS, pod("one-too-many"))
    await plane.settled()
    found = await plane.client.get(RESOURCE_QUOTAS, "default", "q")
    assert found["status"]["used"] == {"pods": "24"}


@with_all
async def test_a_quota_shows_what_is_used(plane):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {
            "hard": {"pods": "10", "requests.cpu": "5", "count/leases.coordination.k8s.io": "3"}
        },
    }
    await plane.client.create(RESOURCE_QUOTAS, quota)
    await plane.client.create(PODS, pod("a"))
    await plane.settled()
    found = (await plane.client.get(RESOURCE_QUOTAS, "default", "q"))["status"]
    assert found["hard"] == quota["spec"]["hard"]
    assert found["used"] == {
        "pods": "1",
        "requests.cpu": "100m",
        "count/leases.coordination.k8s.io": "0",
    }
    await plane.client.delete(PODS, "default", "a", grace_seconds=0)
    await plane.client.create(
        CONFIG_MAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "default"},
        },
    )
    await plane.settled()
    found = (await plane.client.get(RESOURCE_QUOTAS, "default", "q"))["status"]
    assert found["used"]["pods"] == "0"


@with_all
async def test_endpoints_written_by_hand_become_a_slice(plane):
    meta = {"name": "db", "namespace": "default"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"ports": [{"port": 5432}]},
    }
    endpoints = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": meta,
        "subsets": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 5432}]}],
    }
    await plane.client.create(SERVICES, service)
    await plane.client.create(ENDPOINTS, endpoints)
    await plane.settled()
    slices = (await plane.client.list(ENDPOINT_SLICES, "default")).items
    [found] = [one for one in slices if one["metadata"]["name"].startswith("db-")]
    assert found["endpoints"][0]["addresses"] == ["192.0.2.7"]
    version = found["metadata"]["resourceVersion"]
    await plane.settled(seconds=5)
    again = await plane.client.get(ENDPOINT_SLICES, "default", found["metadata"]["name"])
    assert again["metadata"]["resourceVersion"] == version
    await plane.client.delete(ENDPOINTS, "default", "db")
    await plane.settled()
    slices = (await plane.client.list(ENDPOINT_SLICES, "default")).items
    assert not [one for one in slices if one["metadata"]["name"].startswith("db-")]


@with_all
async def test_an_ephemeral_volume_has_a_claim_that_goes_with_its_pod(plane):
    template = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    await plane.client.create(PODS, pod("p", volumes=[volume]))
    await plane.settled()
    claims = (await plane.client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
    assert [one["metadata"]["name"] for one in claims] == ["p-scratch"]
    await plane.client.delete(PODS, "default", "p", grace_seconds=0)
    await plane.settled(seconds=2)
    claims = (await plane.client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
    assert claims == []


@with_all
async def test_an_ephemeral_volume_gets_its_claim_when_another_s_is_out_of_the_way(plane):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    other = {"metadata": {"name": "p-scratch", "namespace": "default"}, "spec": spec}
    await plane.client.create(PERSISTENT_VOLUME_CLAIMS, other)
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    await plane.client.create(PODS, pod("p", volumes=[volume]))
    await plane.settled()
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "p-scratch")
    await plane.settled(seconds=2)
    made = await plane.client.get(PERSISTENT_VOLUME_CLAIMS, "default", "p-scratch")
    assert made["metadata"]["ownerReferences"][0]["name"] == "p"


@with_all
async def test_policies_and_service_ranges_have_a_status(plane):
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["deployments"],
                    }
                ]
            },
            "validations": [{"expression": "object.spec.replicas <= 5"}],
        },
    }
    await plane.client.create(VALIDATING_ADMISSION_POLICIES, policy)
    cidr = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "more"},
        "spec": {"cidrs": ["10.200.0.0/16"]},
    }
    await plane.client.create(SERVICE_CIDRS, cidr)
    await plane.settled()
    found = await plane.client.get(VALIDATING_ADMISSION_POLICIES, "", "p")
    assert found["status"]["observedGeneration"] == 1
    made = await plane.client.get(SERVICE_CIDRS, "", "more")
    assert made["status"]["conditions"][0]["status"] == "True"
    service = {"metadata": {"name": "there"},
               "spec": {"clusterIP": "10.200.0.7", "ports": [{"port": 80}]}}  # fmt: skip
    await plane.client.create(SERVICES, service, "default")
    await plane.client.delete(SERVICE_CIDRS, "", "more")
    await plane.settled()
    held = await plane.client.get(SERVICE_CIDRS, "", "more")
    assert held["status"]["conditions"][0]["reason"] == "Terminating"
    other = {"metadata": {"name": "too-late"},
             "spec": {"clusterIP": "10.200.0.8", "ports": [{"port": 80}]}}  # fmt: skip
    with pytest.raises(Invalid, match="does not match the current range"):
        await plane.client.create(SERVICES, other, "default")
    await plane.client.delete(SERVICES, "default", "there")
    await plane.settled()
    left = (await plane.client.list(SERVICE_CIDRS)).items
    assert "more" not in [one["metadata"]["name"] for one in left]


@with_all
async def test_a_quota_limits_devices_by_their_class(plane):
    name = "gpu.deviceclass.resource.k8s.io/devices"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {name: "1"}},
    }
    await plane.client.create(RESOURCE_QUOTAS, quota, "default")
    await plane.settled()

    def claim(name, count):
        request = {"name": "d", "exactly": {"deviceClassName": "gpu", "count": count}}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [request]}},
        }

    with pytest.raises(Forbidden, match="exceeded quota"):
        await plane.client.create(RESOURCE_CLAIMS, claim("two", 2), "default")
    await plane.client.create(RESOURCE_CLAIMS, claim("one", 1), "default")
    await plane.settled(seconds=2)
    found = (await plane.client.get(RESOURCE_QUOTAS, "default", "q"))["status"]
    assert found["used"] == {name: "1"}
