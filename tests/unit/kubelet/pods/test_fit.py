"""[N5] reasons and messages of the node's own admission."""

from dataclasses import replace

import pytest

from sampan.api.rules import pod_resources
from sampan.api.rules.tolerations import Taint
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.pods.fit import APPARMOR_ANNOTATION, NodeRoom, refusal, shared_requests
from tests.support.worlds.simulated_node import pod_named

ALLOCATABLE = {"cpu": "1", "memory": "1Gi", "pods": "3"}


def room(labels=None, taints=()):
    return NodeRoom("node-1", {"kubernetes.io/os": "linux", **(labels or {})},
                    frozenset(taints), ALLOCATABLE)  # fmt: skip


def asking(cpu="0", memory="0", **container):
    requests = {"cpu": cpu, "memory": memory}
    one = {"name": "main", "image": "a", "resources": {"requests": requests}, **container}
    return pod_named("web", containers=[one])


def affinity(*expressions, fields=()):
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return pod_named("web", affinity={"nodeAffinity": required})


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def labelled(pod, labels):
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}


PORT = {"ports": [{"containerPort": 80, "hostPort": 80}]}
TAINT = Taint("gone", "yes", "NoExecute")
NO_MATCH = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
REFUSED = {
    "cpu": (
        asking(cpu="2"),
        [asking(cpu="100m")],
        room(),
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 2000, used: 100, capacity: 1000",
    ),
    "memory": (
        asking(memory="1Gi"),
        [asking(memory="1Mi")],
        room(),
        "OutOfmemory",
        "Node didn't have enough resource: memory, requested: 1073741824, used: 1048576, "
        "capacity: 1073741824",
    ),
    "pods": (
        asking(),
        [asking()] * 3,
        room(),
        "OutOfpods",
        "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    ),
    "selector": (
        pod_named("web", nodeSelector={"disk": "ssd"}),
        [],
        room(),
        "NodeAffinity",
        NO_MATCH,
    ),
    "affinity": (affinity(expression("disk", "In", "ssd")), [], room(), "NodeAffinity", NO_MATCH),
    "port": (
        asking(**PORT),
        [asking(**PORT)],
        room(),
        "NodePorts",
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    ),
    "taint": (
        asking(),
        [],
        room(taints=(TAINT,)),
        "TaintToleration",
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    ),
    "os": (
        pod_named("web", os={"name": "windows"}),
        [],
        room(),
        "PodOSNotSupported",
        "Failed to admit pod as the OS field doesn't match node OS",
    ),
    "os label": (
        labelled(pod_named("web"), {"kubernetes.io/os": "windows"}),
        [],
        room(),
        "PodOSSelectorNodeLabelDoesNotMatch",
        "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    ),
    "os selector": (
        pod_named("web", nodeSelector={"kubernetes.io/os": "windows"}),
        [],
        room(),
        "NodeAffinity",
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    ),
}
ADMITTED = {
    "exactly what is left": (asking(cpu="900m"), [asking(cpu="100m")], room()),
    "nothing asked": (asking(), [asking(cpu="1")], room()),
    "selected": (pod_named("web", nodeSelector={"disk": "ssd"}), [], room({"disk": "ssd"})),
    "exists": (affinity(expression("disk", "Exists")), [], room({"disk": "ssd"})),
    "not in": (affinity(expression("disk", "NotIn", "hdd")), [], room()),
    "absent": (affinity(expression("disk", "DoesNotExist")), [], room()),
    "greater": (affinity(expression("cores", "Gt", "3")), [], room({"cores": "4"})),
    "by name": (affinity(fields=[expression("metadata.name", "In", "node-1")]), [], room()),
    "tolerated": (
        pod_named("web", tolerations=[{"key": "gone", "operator": "Exists"}]),
        [],
        room(taints=(TAINT,)),
    ),
    "only the scheduler cares": (asking(), [], room(taints=(replace(TAINT, effect="NoSchedule"),))),
    "same port, other protocol": (
        asking(ports=[{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}]),
        [asking(**PORT)],
        room(),
    ),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_for(case):
    """[N5]"""
    pod, others, node, reason, message = REFUSED[case]
    verdict = refusal(pod, others, node)
    assert verdict is not None
    assert (verdict.reason, verdict.message) == (reason, f"Pod was rejected: {message}")


@pytest.mark.parametrize("case", ADMITTED, ids=str)
def test_admitted_with(case):
    """[N5]"""
    assert refusal(*ADMITTED[case]) is None


def test_a_pod_that_claims_devices_does_not_run_without_them():
    claiming = pod_named("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    found = refusal(claiming, [], room())
    assert found.reason == "UnexpectedAdmissionError"
    assert "resource claims (gpu) need a device driver" in found.message
    assert refusal(claiming, [], replace(room(), prepares_devices=True)) is None


@pytest.mark.parametrize(
    ("name", "host", "why"),
    [
        ("kernel.msgmax", {}, '"kernel.msgmax" not allowlisted'),
        ("kernel/core_pattern", {}, '"kernel.core_pattern" not allowlisted'),
        ("net.ipv4.tcp_syncookies", {"hostNetwork": True}, "not allowed with host net enabled"),
        ("kernel.shm_rmid_forced", {"hostIPC": True}, "not allowed with host ipc enabled"),
        ("net.ipv4.tcp_syncookies", {}, None),
        ("net/ipv4/ip_unprivileged_port_start", {}, None),
    ],
)
def test_only_safe_sysctls_are_set(name, host, why):
    """An attack: a pod that changes the machine for everybody."""
    sysctls = {"sysctls": [{"name": name, "value": "1"}]}
    pod = pod_named("web", containers=[{"name": "a"}], securityContext=sysctls, **host)
    verdict = refusal(pod, [], room())
    assert refusal(pod, [], replace(room(), unsafe_sysctls=["net.*", name])) is None or host
    if why is None:
        assert verdict is None
        return
    assert verdict.reason == "SysctlForbidden"
    assert "forbidden sysctl: " in verdict.message
    assert why in verdict.message


def test_what_pods_of_a_template_ask_for_is_worked_out_once_unless_more_counts():
    resources = {"requests": {"cpu": "1"}}
    main = {"name": "main", "resources": resources}
    alike = [pod_named(name, containers=[dict(main)]) for name in ("a", "b")]
    assert shared_requests(alike[0]) is shared_requests(alike[1])
    for pod in (
        *alike,
        pod_named("bare"),
        pod_named("two", containers=[main, {**main, "name": "second"}]),
        pod_named("init", containers=[main], initContainers=[{**main, "restartPolicy": "Always"}]),
        pod_named("more", containers=[main], overhead={"cpu": "1"}),
        pod_named("whole", containers=[main], resources={"requests": {"cpu": "3"}}),
    ):
        assert shared_requests(pod) == pod_resources.requests(pod), pod["metadata"]["name"]


@pytest.mark.parametrize(
    ("spec", "annotations", "wanted"),
    [
        ({"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}, {}, True),
        ({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}, {}, False),
        (
            {"initContainers": [{"securityContext": {"appArmorProfile": {"type": "Localhost"}}}]},
            {},
            True,
        ),
        ({}, {f"{APPARMOR_ANNOTATION}main": "runtime/default"}, True),
        ({}, {f"{APPARMOR_ANNOTATION}main": "unconfined"}, False),
        ({}, {}, False),
    ],
)
def test_apparmor_is_not_left_out_where_there_is_none(spec, annotations, wanted):
    """[N5]"""
    meta = {"name": "p", "annotations": annotations}
    pod = {"metadata": meta, "spec": {"containers": [{"name": "main"}], **spec}}
    refused = refusal(pod, [], replace(room(), apparmor=False))
    message = "Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host"
    assert refused == (Verdict("AppArmor", message) if wanted else None)
    assert refusal(pod, [], room()) is None
    running = {**pod, "status": {"phase": "Running"}}
    assert refusal(running, [], replace(room(), apparmor=False)) is None
