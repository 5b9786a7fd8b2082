"""Services through the node's rules, in a network namespace that the test made [W1]."""

import subprocess

import pytest

from sampan.testing.parts.network_pods import (
    apply,
    ask_from,
    ask_from_pod,
    cluster_ip,
    pod,
    python_pod,
    server,
    service,
)
from sampan.testing.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]


@pytest.fixture
def machine(two_machines):
    """The node."""
    return two_machines[0]


@pytest.fixture
def outside(two_machines):
    """A machine that is not of the cluster."""
    return two_machines[1]


@pytest.fixture
def kubectl(lone_cluster):
    return lone_cluster.kubectl


def test_a_cluster_ip_leads_to_every_endpoint_from_a_pod_and_from_the_node(kubectl, machine):
    labels = {"app": "web"}
    web = service("web", [{"port": 80, "targetPort": 8080}], labels)
    apply(kubectl, web, server("web-a", labels), server("web-b", labels),
          pod("client", "sleep 1000"))  # fmt: skip
    address = cluster_ip(kubectl, "web")

    def both(ask):
        seen = set()
        eventually(lambda: seen.add(ask()) or {"web-a", "web-b"} <= seen, 30)

    both(lambda: ask_from_pod(kubectl, "client", address, 80))
    both(lambda: ask_from(machine, address, 80))
    # An endpoint that asks its own Service reaches itself, too.
    both(lambda: ask_from_pod(kubectl, "web-a", address, 80))
    kubectl("delete", "pod", "web-a", "web-b", "--now")
    refused(kubectl, machine, address)


def refused(kubectl, machine, address):
    """No endpoints: said at once, not after a timeout."""

    def from_node():
        command = ["sh", "-c", f"busybox nc -w 5 {address} 80 </dev/null"]
        done = subprocess.run(
            [*machine.where, *command], capture_output=True, text=True, timeout=10, check=False
        )
        return "refused" in done.stderr

    eventually(from_node)
    said = kubectl.fails("exec", "client", "--", "nc", "-w", "5", address, "80")
    assert "refused" in said


def test_nothing_for_the_service_range_leaves_the_machine(kubectl, machine):
    apply(kubectl, pod("curious", "sleep 1000"))
    machine.run("nft", "add table ip watch; add chain ip watch out "
                "{ type filter hook postrouting priority 300; };"
                'add rule ip watch out oifname "eth0" ip daddr 10.96.0.0/12 counter')  # fmt: skip
    for address in ("10.96.77.77", "10.111.255.254"):
        ask_from_pod(kubectl, "curious", address, 80)
        ask_from(machine, address, 80)
        machine.run("sh", "-c", f"echo x | busybox nc -u -w 1 {address} 53 || true")
    assert "packets 0 bytes 0" in machine.run("nft", "list", "table", "ip", "watch")
    machine.run("nft", "delete", "table", "ip", "watch")


CALL = """
import json, os, ssl, urllib.request, urllib.error
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=place + "ca.crt")
token = open(place + "token").read()
def ask(host, path):
    port = os.environ["KUBERNETES_SERVICE_PORT"]
    request = urllib.request.Request(f"https://{host}:{port}{path}",
                                     headers={"Authorization": "Bearer " + token})
    try:
        return urllib.request.urlopen(request, context=trust, timeout=5).status
    except urllib.error.HTTPError as error:
        return json.load(error)["message"]
for host in [os.environ["KUBERNETES_SERVICE_HOST"]]:
    print(ask(host, "/version"))
    print(ask(host, "/api/v1/namespaces/default/pods"))
"""


def test_a_pod_reaches_the_api_with_its_own_token(kubectl):
    apply(kubectl, python_pod("inside", CALL))
    kubectl.wait_phase("inside", "Succeeded")
    first, second = kubectl("logs", "inside").splitlines()
    assert first == "200"
    assert 'User "system:serviceaccount:default:default" cannot list resource "pods"' in second


def test_the_api_for_pods_is_not_for_other_machines(kubectl, machine, outside):
    [slice_] = kubectl.get("endpointslices", "-l", "kubernetes.io/service-name=kubernetes")["items"]
    [endpoint], [port] = slice_["endpoints"], slice_["ports"]
    [gateway] = endpoint["addresses"]
    assert gateway.startswith("10.244.")
    assert "refused" not in ask_from(machine, gateway, port["port"])
    outside.run("ip", "route", "add", "10.244.0.0/16", "via", machine.address)
    assert "timed out" in ask_from(outside, gateway, port["port"])
    outside.run("ip", "route", "del", "10.244.0.0/16")
