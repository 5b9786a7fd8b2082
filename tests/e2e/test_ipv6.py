"""IPv6 beside IPv4, and alone, in network namespaces that the test made [W1–W5].

The steps of upstream's page on how to validate dual-stack are among these.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.parts.machines import machines
from tests.support.parts.network_pods import (
    apply,
    ask_by_udp_from,
    ask_by_udp_from_pod,
    ask_from,
    ask_from_pod,
    pod,
    python_pod,
    server,
    service,
)
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import RUNTIME, SampanProcess

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
LABELS = {"app": "dual"}
PORTS = [
    {"name": "tcp", "port": 80, "targetPort": 8080},
    {"name": "udp", "port": 80, "targetPort": 8080, "protocol": "UDP"},
]


@pytest.fixture
def kubectl(lone_cluster):
    return lone_cluster.kubectl


@pytest.fixture(scope="module")
def pair(lone_cluster):
    """Two servers, and one who asks."""
    kubectl = lone_cluster.kubectl
    show = "echo $POD_IPS; cat /etc/hosts; sleep 1000"
    asker = pod("dual-client", show)
    field = {"fieldRef": {"fieldPath": "status.podIPs"}}
    asker["spec"]["containers"][0]["env"] = [{"name": "POD_IPS", "valueFrom": field}]
    apply(kubectl, server("dual-a", LABELS), server("dual-b", LABELS), asker)
    yield kubectl
    kubectl("delete", "pod", "dual-a", "dual-b", "dual-client", "--now")


def cluster_ips(kubectl, name):
    return kubectl.get("service", name)["spec"]["clusterIPs"]


def test_nodes_and_pods_have_an_address_of_each_family(pair, two_machines):
    [node] = pair.get("nodes")["items"]
    assert [":" in each for each in node["spec"]["podCIDRs"]] == [False, True]
    addresses = {
        each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP"
    }
    assert addresses == {two_machines[0].address, two_machines[0].address_ipv6}
    status = pair.get("pod", "dual-client")["status"]
    first, second = [each["ip"] for each in status["podIPs"]]
    assert status["podIP"] == first
    assert [":" in each for each in (first, second)] == [False, True]
    assert {each["ip"] for each in status["hostIPs"]} == addresses
    said = pair("logs", "dual-client")
    assert f"{first},{second}\n" in said
    for address in (first, second):
        assert re.search(rf"^{address}\s+dual-client$", said, re.MULTILINE)


def test_a_service_answers_at_each_of_its_addresses(pair, two_machines):
    apply(pair, service("dual", PORTS, LABELS, ipFamilyPolicy="PreferDualStack"))
    addresses = cluster_ips(pair, "dual")
    assert [":" in each for each in addresses] == [False, True]
    pieces = pair.get("endpointslices", "-l", "kubernetes.io/service-name=dual")["items"]
    assert sorted(each["addressType"] for each in pieces) == ["IPv4", "IPv6"]

    def both(ask):
        seen = set()
        eventually(lambda: seen.add(ask()) or {"dual-a", "dual-b"} <= seen, 60)

    for address in addresses:
        both(lambda a=address: ask_from_pod(pair, "dual-client", a, 80))
        both(lambda a=address: ask_from(two_machines[0], a, 80))
        # An endpoint that asks its own Service reaches itself, too.
        both(lambda a=address: ask_from_pod(pair, "dual-a", a, 80))
        both(lambda a=address: ask_by_udp_from(two_machines[0], a, 80))
        both(lambda a=address: ask_by_udp_from_pod(pair, "dual-b", a, 80))


def test_a_service_goes_from_one_family_to_two_and_back(pair, two_machines):
    apply(pair, service("turning", PORTS, LABELS))
    [first] = cluster_ips(pair, "turning")
    patch = {"spec": {"ipFamilyPolicy": "RequireDualStack"}}
    pair("patch", "service", "turning", "-p", json.dumps(patch))
    [same, second] = cluster_ips(pair, "turning")
    assert same == first
    reach = ("dual-a", "dual-b")
    eventually(lambda: ask_from(two_machines[0], second, 80) in reach, 60)
    patch = {"spec": {"ipFamilyPolicy": "SingleStack"}}
    pair("patch", "service", "turning", "-p", json.dumps(patch))
    assert cluster_ips(pair, "turning") == [first]
    # What nobody has is refused, and does not leave the machine.
    eventually(lambda: "refused" in pair.fails(
        "exec", "dual-client", "--", "nc", "-w", "5", second, "80"), 60)  # fmt: skip


def test_names_have_addresses_of_both_families(pair):
    apply(
        pair,
        service("six", PORTS, LABELS, ipFamilies=["IPv6"]),
        service("bare", PORTS, LABELS, clusterIP="None", ipFamilyPolicy="RequireDualStack"),
    )
    [six] = cluster_ips(pair, "six")

    def lookup(name, server_address=""):
        command = f"nslookup {name} {server_address} 2>&1 || true"
        return pair("exec", "dual-client", "--", "sh", "-c", command)

    eventually(lambda: f"Address: {six}" in lookup("six.default.svc.cluster.local"), 60)
    pods = [pair.get("pod", name)["status"]["podIPs"] for name in ("dual-a", "dual-b")]
    every = {each["ip"] for one in pods for each in one}
    eventually(lambda: all(each in lookup("bare.default.svc.cluster.local") for each in every), 60)
    # Each of the name server's own addresses answers, also backwards.
    for address in cluster_ips_of_dns(pair):
        assert "six.default.svc.cluster.local" in lookup(six, address)


def cluster_ips_of_dns(kubectl):
    found = kubectl.get("service", "kube-dns", "-n", "kube-system")["spec"]["clusterIPs"]
    assert len(found) == 2
    return found


def test_node_ports_host_ports_and_load_balancers_are_at_every_address(pair, two_machines):
    machine, outside = two_machines
    ported = server("dual-ported", {"app": "ported"})
    ported["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8088}]
    balanced = service("dual-lb", [{"port": 8181, "targetPort": 8080, "nodePort": 30181}], LABELS,
                       type="LoadBalancer", ipFamilyPolicy="RequireDualStack",
                       externalTrafficPolicy="Local")  # fmt: skip
    apply(pair, ported, balanced)
    ingress = {machine.address, machine.address_ipv6}

    def entries():
        status = pair.get("service", "dual-lb")["status"]
        return {each["ip"] for each in status.get("loadBalancer", {}).get("ingress", ())}

    eventually(lambda: entries() == ingress, 60)
    health = pair.get("service", "dual-lb")["spec"]["healthCheckNodePort"]
    for address in sorted(ingress):
        for port, names in ((30181, ("dual-a", "dual-b")), (8181, ("dual-a", "dual-b")),
                            (8088, ("dual-ported",))):  # fmt: skip
            eventually(lambda a=address, p=port, n=names: ask_from(outside, a, p) in n, 60)
        host = f"[{address}]" if ":" in address else address
        command = (f"printf 'GET /healthz HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n' | "
                   f"busybox nc -w 3 {address} {health}")  # fmt: skip
        eventually(lambda c=command: '"localEndpoints":2' in outside.run("sh", "-c", c), 60)
    # Local: endpoints see who asks.
    seen = outside.run("sh", "-c", f"busybox nc -w 3 {machine.address_ipv6} 30181 </dev/null")
    assert outside.address_ipv6 in seen
    pair("delete", "pod", "dual-ported", "--now")
    pair("delete", "service", "dual-lb")


def test_a_policy_holds_for_both_families(pair):
    addresses = [each["ip"] for each in pair.get("pod", "dual-a")["status"]["podIPs"]]
    for address in addresses:
        assert ask_from_pod(pair, "dual-client", address, 8080) == "dual-a"
    denied = {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "closed"}, "spec": {"podSelector": {"matchLabels": LABELS}},
    }  # fmt: skip
    pair.apply(json.dumps(denied))
    for address in addresses:
        eventually(lambda a=address: "dual-a" not in ask_from_pod(pair, "dual-client", a, 8080), 60)
    pair("delete", "networkpolicy", "closed")
    for address in addresses:
        eventually(lambda a=address: ask_from_pod(pair, "dual-client", a, 8080) == "dual-a", 60)


ASK_THE_API = """
import os, ssl, urllib.request
host = os.environ["KUBERNETES_SERVICE_HOST"]
print(host)
context = ssl.create_default_context(
    cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
token = open("/var/run/secrets/kubernetes.io/serviceaccount/token").read()
for name in (f"[{host}]", "kubernetes.default.svc"):
    request = urllib.request.Request(f"https://{name}/version",
                                     headers={"Authorization": "Bearer " + token})
    print(urllib.request.urlopen(request, context=context, timeout=60).status)
"""


def test_a_cluster_of_ipv6_alone(archive):
    root = Path(tempfile.mkdtemp(prefix="sampan-v6-"))
    with machines(2) as [machine, outside]:
        flags = ("--runtime", RUNTIME, "--ip-families", "ipv6", "--node-name", "one")
        cluster = SampanProcess(root, *flags, where=machine.where).up()
        try:
            cluster.run("image", "import", str(archive))
            kubectl = cluster.kubectl
            ports = [{"port": 80, "targetPort": 8080, "nodePort": 30080}]
            apply(kubectl, server("web", LABELS), python_pod("asker", ASK_THE_API),
                  service("web", ports, LABELS, type="NodePort"))  # fmt: skip
            kubectl.wait_phase("asker", "Succeeded")
            said = kubectl("logs", "asker").split()
            assert said == [kubectl.get("service", "kubernetes")["spec"]["clusterIP"], "200", "200"]
            [address] = cluster_ips(kubectl, "web")
            assert ":" in address
            eventually(lambda: ask_from(machine, address, 80) == "web", 60)
            eventually(lambda: ask_from(outside, machine.address_ipv6, 30080) == "web", 60)
            assert kubectl("exec", "web", "--", "true") == ""
            refusal = kubectl.fails("create", "-f", "-", stdin=json.dumps(
                service("both", PORTS, LABELS, ipFamilyPolicy="RequireDualStack")))  # fmt: skip
            assert "this cluster is not configured for dual-stack services" in refusal
            kubectl("delete", "pods", "--all", "--now")
        finally:
            cluster.stop()
            cluster.reset()
        assert "sampan" not in machine.run("nft", "list", "tables")
        assert "fd00" not in machine.run("ip", "-6", "route")
    shutil.rmtree(root)
