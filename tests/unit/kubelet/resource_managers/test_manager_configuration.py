"""Fields of a KubeletConfiguration that pin processors and memory."""

from dataclasses import replace

import pytest

from sampan.api.configuration import BadConfiguration
from sampan.kubelet.configuration import with_configuration
from sampan.kubelet.resource_managers.cpu_options import CpuOptions
from sampan.kubelet.resource_managers.topology_policies import TopologySettings
from sampan.kubelet.settings import KubeletSettings

BEFORE = KubeletSettings("node")


def read(**fields):
    written = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    return replace(with_configuration(BEFORE, {**written, **fields}), shown={})


def refused(**fields):
    with pytest.raises(BadConfiguration) as refusal:
        read(**fields)
    return refusal.value.problems


def test_policies_options_and_reservations_are_read():
    """[H5]"""
    found = read(
        cpuManagerPolicy="static",
        cpuManagerPolicyOptions={"full-pcpus-only": "true"},
        cpuManagerReconcilePeriod="3s",
        memoryManagerPolicy="Static",
        reservedMemory=[{"numaNode": 1, "limits": {"memory": "1Gi", "hugepages-2Mi": "4Mi"}}],
        reservedSystemCPUs="0-1,4",
        kubeReserved={"cpu": "100m"},
        topologyManagerPolicy="single-numa-node",
        topologyManagerScope="pod",
        topologyManagerPolicyOptions={
            "prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "16",
        },
    )  # fmt: skip
    managers = found.managers
    assert managers.cpu_options == CpuOptions(full_cores=True)
    assert managers.reconcile_seconds == 3.0
    assert managers.reserved_cpus == {0, 1, 4}
    assert found.reserved.cpu_milli == 3000  # in place of what kubeReserved says
    assert managers.reserved_memory == {1: {"memory": 1 << 30, "hugepages-2Mi": 4 << 20}}
    assert managers.topology == TopologySettings("single-numa-node", "pod", True, 16)


def test_the_defaults_change_nothing():
    assert read(
        cpuManagerPolicy="none", memoryManagerPolicy="None", topologyManagerPolicy="none",
        topologyManagerScope="container",
    ) == BEFORE  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"cpuManagerPolicy": "tea"}, 'cpuManagerPolicy: unknown policy: "tea"'),
        ({"memoryManagerPolicy": "static"}, 'memoryManagerPolicy: unknown policy: "static"'),
        ({"cpuManagerPolicyOptions": {"tea": "1"}}, "unknown CPU Manager Policy option"),
        ({"cpuManagerPolicyOptions": 3}, "cpuManagerPolicyOptions: "),
        ({"reservedSystemCPUs": "x"}, "unable to parse reservedSystemCPUs (--reserved-cpus) x"),
        ({"reservedMemory": [{"numaNode": 0, "limits": {"cpu": "1"}}]}, 'limit type "cpu" for'),
        ({"reservedMemory": [{"numaNode": 0, "limits": {"memory": "0"}}]}, "may not be zero for"),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1"}}] * 2},
            'duplicate value for NUMA node 0 and resource "memory"',
        ),
        (
            {"topologyManagerPolicy": "tea"},
            'topologyManagerPolicy (--topology-manager-policy) "tea" must be one of: ["none" '
            '"best-effort" "restricted" "single-numa-node"]',
        ),
        ({"topologyManagerScope": "tea"}, '"tea" must be one of: "container", or "pod"'),
        (
            {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "4"}},
            "should not be less than 8",
        ),
        (
            {"topologyManagerPolicyOptions": {"tea": "4"}},
            'unknown Topology Manager Policy option: "tea"',
        ),
        ({"featureGates": {"Tea": True}}, "featureGates: this node has no gate 'Tea'"),
        (
            {
                "featureGates": {"CPUManagerPolicyAlphaOptions": True},
                "cpuManagerPolicy": "static",
                "cpuManagerPolicyOptions": {"align-by-socket": "true"},
                "topologyManagerPolicy": "single-numa-node",
            },
            "policy is incompatible with CPUManager align-by-socket",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_upstreams_words(fields, why):
    [problem] = refused(**fields)
    assert why in problem
