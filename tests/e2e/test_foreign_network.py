"""`--network none`: pods on the network of a CNI plugin that the user configures [W1, W2, W5]."""

import ipaddress
import json
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from sampan.network.cni_configuration import plugin_directory
from tests.support.parts.machines import machines
from tests.support.parts.network_pods import (
    apply,
    ask_from,
    ask_from_pod,
    cluster_ip,
    pod,
    python_pod,
    server,
    service,
)
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import SampanProcess, environment

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.skipif(plugin_directory() is None, reason="needs the reference CNI plugins"),
]
RANGE = "10.77.0.0/24"
# As a user writes it by hand: no bridge, a route for each pod, addresses out of a file.
CONFIGURATION = {
    "cniVersion": "0.4.0",
    "name": "by-hand",
    "plugins": [
        {
            "type": "ptp",
            "ipMasq": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": RANGE}]],
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": "DIRECTORY",
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
# A name server of the user's own, which has one address for whatever it is asked.
NAME_SERVER = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 5353))
while True:
    asked, who = server.recvfrom(512)
    question = asked[12:asked.index(b"\\0", 12) + 5]
    record = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\5\\0\\4" + bytes([192, 0, 2, 77])
    server.sendto(asked[:2] + b"\\x84\\0\\0\\1\\0\\1\\0\\0\\0\\0" + question + record, who)
"""
CALL = """
import ssl, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=place + "ca.crt")
token = open(place + "token").read()
request = urllib.request.Request("https://kubernetes.default.svc/version",
                                 headers={"Authorization": "Bearer " + token})
print(urllib.request.urlopen(request, context=trust, timeout=30).status)
"""


@pytest.fixture(params=["cri", "native"])
def world(archive, request):
    root = Path(tempfile.mkdtemp(prefix="sampan-cni-"))
    conf_dir = root / "net.d"
    conf_dir.mkdir()
    with machines(2) as [node, other]:
        flags = ("--runtime", request.param, "--network", "none", "--cni-conf-dir", str(conf_dir),
                 "--cni-bin-dir", str(plugin_directory()),
                 "--dns-stub-domain", f"corp.test={other.address}:5353")  # fmt: skip
        command = [*other.where, sys.executable, "-c", NAME_SERVER, other.address]
        names = Program(command, root / "names.out", environment())
        cluster = SampanProcess(root, *flags, where=node.where).up()
        try:
            cluster.run("image", "import", str(archive))
            yield cluster, node, other, conf_dir
            cluster.kubectl("delete", "pods", "--all", "--now")
            # No address is kept that no pod has any more.
            eventually(lambda: not list((root / "ipam").glob("*/[0-9]*")), 60)
        finally:
            code = cluster.stop()
            cluster.reset()
            names.stop()
            left = node.run("nft", "list", "tables") + node.run("ip", "link")
        assert code == 0, cluster.output.read_text()
        assert "sampan" not in left
        assert [file.name for file in conf_dir.iterdir()] == ["10-by-hand.conflist"]
    shutil.rmtree(root)


def is_ready(kubectl):
    """None while the node has not said so."""
    for node in kubectl.get("nodes")["items"]:
        for condition in node["status"].get("conditions") or ():
            if condition["type"] == "Ready":
                return condition["status"] == "True"
    return None


def test_services_names_and_the_api_work_on_a_network_of_the_user_s(world):
    cluster, node, other, conf_dir = world
    kubectl = cluster.kubectl
    eventually(lambda: is_ready(kubectl) is False, 60)  # nobody has configured a network yet
    chosen = json.dumps(CONFIGURATION).replace("DIRECTORY", str(conf_dir.parent / "ipam"))
    (conf_dir / "10-by-hand.conflist").write_text(chosen)
    eventually(lambda: is_ready(kubectl), 60)
    labels = {"app": "far"}
    ports = [{"port": 80, "targetPort": 8080, "nodePort": 30077}]
    apply(kubectl, pod("asker", "sleep 1000"), server("one", labels), server("two", labels),
          service("far", ports, labels, type="NodePort"), python_pod("caller", CALL))  # fmt: skip
    for name in ("asker", "one", "two"):
        address = kubectl.get("pod", name)["status"]["podIP"]
        assert ipaddress.ip_address(address) in ipaddress.ip_network(RANGE)
    both, address = {"one", "two"}, cluster_ip(kubectl, "far")
    for ask in (
        lambda: ask_from_pod(kubectl, "asker", address, 80),
        lambda: ask_from_pod(kubectl, "asker", "far.default.svc.cluster.local", 80),
        lambda: ask_from(node, address, 80),
        lambda: ask_from(other, node.address, 30077),
    ):
        seen = set()
        eventually(lambda ask=ask, seen=seen: seen.add(ask()) or both <= seen, 60)
    # A pod reaches itself by its Service, too.
    mirrored = set()
    eventually(lambda: mirrored.add(ask_from_pod(kubectl, "one", address, 80)) or both <= mirrored)
    lookup = kubectl("exec", "asker", "--", "sh", "-c", "nslookup db.corp.test || true")
    assert "192.0.2.77" in lookup
    kubectl.wait_phase("caller", "Succeeded")
    assert kubectl("logs", "caller").strip() == "200"
    _api_is_for_pods_only(kubectl, node, other)
    _host_ports_are_the_plugin_s(kubectl, node, other)
    cluster.kill()  # who comes back takes back what plugins made
    _failures_are_told(cluster.up().kubectl, conf_dir)


def _host_ports_are_the_plugin_s(kubectl, node, other):
    published = server("published", {"app": "published"})
    published["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 30078}]
    apply(kubectl, published)
    eventually(lambda: ask_from(other, node.address, 30078) == "published", 60)


def _failures_are_told(kubectl, conf_dir):
    """In the words that containerd has for them; and the pod runs once there is a plugin."""
    file = conf_dir / "10-by-hand.conflist"
    chosen = file.read_text()
    file.write_text(chosen.replace('"portmap"', '"absent"'))
    kubectl.apply(json.dumps(pod("stuck", "sleep 1000")))
    told = 'plugin type="absent" failed (add): failed to find plugin "absent" in path'
    eventually(lambda: any(event["reason"] == "FailedCreatePodSandBox"
                           and told in event["message"]
                           and "failed to setup network for sandbox" in event["message"]
                           for event in kubectl.get("events")["items"]), 60)  # fmt: skip
    file.write_text(chosen)
    kubectl("wait", "--for=condition=Ready", "pod/stuck", "--timeout=120s")


def _api_is_for_pods_only(kubectl, node, other):
    """Neither it nor the name server at the address that pods find them at."""
    subset = kubectl.get("endpoints", "kubernetes")["subsets"][0]
    address, port = subset["addresses"][0]["ip"], subset["ports"][0]["port"]
    other.run("ip", "route", "replace", f"{address}/32", "via", node.address)
    question = f"echo | busybox nc -w 1 {address} {port} && echo open || true"
    assert "open" in node.run("sh", "-c", question)
    assert "open" not in other.run("sh", "-c", question)
