"""[N17] the Node object."""

from dataclasses import replace

from sampan.kubelet.contracts.runtime import HandlerFeatures, Image, RuntimeFeatures
from sampan.kubelet.node.machine import SIMULATED, Machine
from sampan.kubelet.node.node_status import (
    NodeKnowledge,
    allocatable_of,
    differs,
    is_ready,
    node_object,
    node_status,
    reconciled_metadata,
)
from sampan.kubelet.runtime.pleg import RuntimeHealth
from sampan.kubelet.settings import Capacity, KubeletSettings

SETTINGS = KubeletSettings("node-1", node_ips=("192.0.2.1",), labels={"disk": "ssd"})
UP = RuntimeHealth("containerd", "1.6.20", True, True, "", True)


def knowledge(health=UP, now=1000.0, images=()):
    return NodeKnowledge(SETTINGS, SIMULATED, health, images, now)


def conditions(status):
    return {one["type"]: one for one in status["conditions"]}


def test_a_node_registers_with_labels_addresses_and_capacity():
    node = node_object(knowledge())
    labels = node["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "node-1"
    assert labels["kubernetes.io/os"] == labels["beta.kubernetes.io/os"] == "linux"
    assert labels["disk"] == "ssd"
    status = node["status"]
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "192.0.2.1"},
        {"type": "Hostname", "address": "node-1"},
    ]
    assert status["capacity"]["cpu"] == "32"
    assert status["capacity"]["pods"] == "110"
    assert status["nodeInfo"]["containerRuntimeVersion"] == "containerd://1.6.20"
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}


def test_a_healthy_node_says_so_in_upstreams_words():
    ready = conditions(node_status(knowledge(), {}))["Ready"]
    assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
    assert ready["message"] == "kubelet is posting ready status"
    assert {
        name: one["reason"] for name, one in conditions(node_status(knowledge(), {})).items()
    } == {
        "MemoryPressure": "KubeletHasSufficientMemory",
        "DiskPressure": "KubeletHasNoDiskPressure",
        "PIDPressure": "KubeletHasSufficientPID",
        "Ready": "KubeletReady",
    }


def test_a_node_without_a_runtime_or_network_says_why():
    down = RuntimeHealth("containerd", "1.6.20", False, False, "connection refused", True)
    no_network = RuntimeHealth(
        "containerd", "1.6.20", True, False, "cni config uninitialized", True
    )
    for health, why in ((down, "connection refused"), (no_network, "cni config uninitialized")):
        ready = conditions(node_status(knowledge(health), {}))["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "KubeletNotReady")
        assert why in ready["message"]
        assert not is_ready(node_status(knowledge(health), {}))


def test_only_a_heartbeat_is_no_difference():
    first = node_status(knowledge(), {})
    later = node_status(knowledge(now=2000.0), first)
    assert (
        conditions(later)["Ready"]["lastHeartbeatTime"]
        != (conditions(first)["Ready"]["lastHeartbeatTime"])
    )
    assert (
        conditions(later)["Ready"]["lastTransitionTime"]
        == (conditions(first)["Ready"]["lastTransitionTime"])
    )
    assert not differs(first, later)
    assert differs(first, node_status(knowledge(images=[Image("i", ("a:1",), (), 5)]), first))


def test_conditions_of_others_stay():
    theirs = {"type": "NetworkUnavailable", "status": "False"}
    assert theirs in node_status(knowledge(), {"conditions": [theirs]})["conditions"]


def test_an_existing_node_gets_only_what_it_lacks():
    wanted = node_object(knowledge())
    assert reconciled_metadata(wanted, wanted) is None
    existing = {"metadata": {"labels": {"mine": "stays", "disk": "hdd"}}}
    patch = reconciled_metadata(existing, wanted)
    assert patch is not None
    assert patch["metadata"]["labels"]["disk"] == "ssd"
    assert "mine" not in patch["metadata"]["labels"]


def test_huge_pages_are_no_ordinary_memory():
    """[N16]"""
    machine = Machine(Capacity(2000, 4 << 30), hugepages={"2Mi": 1 << 30})
    assert allocatable_of(machine)["hugepages-2Mi"] == "1Gi"
    assert allocatable_of(machine)["memory"] == "3Gi"


def test_what_the_runtimes_handlers_can_is_in_the_status():
    """[N17, R1]"""
    features = RuntimeFeatures(
        {"": HandlerFeatures(), "crun": HandlerFeatures(True, True)},
        supplemental_groups_policy=True,
    )
    health = RuntimeHealth("containerd", "2.1.0", True, True, "", True, features)
    status = node_status(knowledge(health), {})
    assert status["features"] == {"supplementalGroupsPolicy": True}
    assert status["runtimeHandlers"] == [
        {"name": "", "features": {"recursiveReadOnlyMounts": False, "userNamespaces": False}},
        {"name": "crun", "features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}},
    ]


def test_a_machine_without_swap_says_nothing_of_it():
    """The API takes only capacities that are greater than zero."""
    for swap in (0, 1 << 30):
        machine = replace(SIMULATED, swap_bytes=swap)
        knowledge = NodeKnowledge(KubeletSettings("n"), machine, RuntimeHealth(), [], 0.0)
        info = node_status(knowledge, {})["nodeInfo"]
        assert info.get("swap") == ({"capacity": swap} if swap else None)


def test_what_others_advertise_for_the_node_stays():
    knowledge = NodeKnowledge(KubeletSettings("n"), SIMULATED, RuntimeHealth(), [], 0.0)
    theirs = {"example.com/dongle": "4", "cpu": "900", "hugepages-3Mi": "3Mi"}
    status = node_status(knowledge, {"capacity": theirs})
    assert status["capacity"]["example.com/dongle"] == "4"
    assert status["allocatable"]["example.com/dongle"] == "4"
    assert status["capacity"]["cpu"] != "900"
    assert "hugepages-3Mi" not in status["capacity"]
