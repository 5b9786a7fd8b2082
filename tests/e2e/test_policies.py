"""NetworkPolicies in the real kernel, in network namespaces that the test made [W4]."""

import os
import re
import subprocess
import sys
from itertools import count

import pytest

from tests.support.parts.machines import machines
from tests.support.parts.network_pods import (
    apply,
    ask_from_pod,
    pod,
    python_pod,
    server,
    service,
)
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.containerd,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


@pytest.mark.parametrize(
    ("family", "seeds", "bridges_ask"),
    [("ip", range(1, 21), "1"), ("ip6", range(21, 41), "1"), ("ip", range(41, 61), "0")],
)
def test_twenty_sets_of_policies_hold_for_every_pair_of_nine_pods(
    tmp_path, family, seeds, bridges_ask
):
    """Also where bridged packets are not shown to the firewall, as on many machines."""
    with machines(1) as [machine]:
        for each in ("iptables", "ip6tables"):
            machine.run("sysctl", "-qw", f"net.bridge.bridge-nf-call-{each}={bridges_ask}")
        done = subprocess.run(
            [*machine.where, sys.executable, "-m", "tests.support.parts.policy_matrix",
             str(tmp_path / "d"), family, *map(str, seeds)],
            capture_output=True, text=True, timeout=220, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        found = re.fullmatch(r"20 sets of policies, (\d+) denied, 0 differences\n", done.stdout)
        assert found, done.stdout
        assert int(found[1]) > 500, "of 5760: or nothing was tested"
        assert "sampan" not in machine.run("nft", "list", "tables")


def policy(name, **spec):
    return {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": name}, "spec": {"podSelector": {}, **spec},
    }  # fmt: skip


# Says what it can reach, from its very first moment on.
FIRST_PACKET = """
import socket
for _ in range(200):
    connection = socket.socket()
    connection.settimeout(0.02)
    try:
        connection.connect(("ADDRESS", 8080))
        print("reached")
    except OSError:
        pass
print("done")
"""


def test_a_policy_holds_from_a_pod_s_first_packet_and_follows_labels(lone_cluster):
    kubectl = lone_cluster.kubectl
    labels = {"app": "guarded"}
    apply(kubectl, server("guarded", labels), pod("friend", "sleep 1000", {"friend": "yes"}),
          pod("stranger", "sleep 1000"))  # fmt: skip
    address = kubectl.get("pod", "guarded")["status"]["podIP"]
    assert ask_from_pod(kubectl, "stranger", address, 8080) == "guarded"
    only_friends = policy("friends", ingress=[{"from": [{"podSelector": {"matchLabels": {
        "friend": "yes"}}}]}])  # fmt: skip
    only_friends["spec"]["podSelector"] = {"matchLabels": labels}
    locked = policy("locked", policyTypes=["Egress"])
    locked["spec"]["podSelector"] = {"matchLabels": {"app": "locked"}}
    apply(kubectl, only_friends, locked)
    eventually(lambda: "timed out" in ask_from_pod(kubectl, "stranger", address, 8080))
    assert ask_from_pod(kubectl, "friend", address, 8080) == "guarded"
    first = python_pod("first", FIRST_PACKET.replace("ADDRESS", address))
    first["metadata"]["labels"] = {"app": "locked", "friend": "yes"}
    apply(kubectl, first)
    kubectl.wait_phase("first", "Succeeded")
    assert kubectl("logs", "first") == "done\n"
    kubectl("label", "pod", "stranger", "friend=yes")
    eventually(lambda: ask_from_pod(kubectl, "stranger", address, 8080) == "guarded")
    kubectl("delete", "networkpolicy", "friends", "locked")
    kubectl("label", "pod", "stranger", "friend-")
    eventually(lambda: ask_from_pod(kubectl, "stranger", address, 8080) == "guarded")


# Says whether somebody answers a question for a name over UDP, and a connection.
ASK_NODE = """
import os, socket
question = b"\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(
    bytes([len(each)]) + each.encode() for each in "kubernetes.default.svc.cluster.local".split(".")
) + b"\\0\\0\\1\\0\\1"
server, *_ = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.settimeout(TIMEOUT)
asker.sendto(question, (server, 53))
try:
    asker.recv(512)
    print("name server")
except TimeoutError:
    pass
try:
    port = int(os.environ["KUBERNETES_SERVICE_PORT"])
    socket.create_connection((os.environ["KUBERNETES_SERVICE_HOST"], port), TIMEOUT)
    print("API")
except TimeoutError:
    pass
"""
KUBE_DNS = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


def test_egress_policies_cover_the_own_node_where_the_namespace_says_so(lone_cluster):
    kubectl = lone_cluster.kubectl

    names = (f"asker-{number}" for number in count())

    def reached(seconds):
        name = next(names)
        asker = python_pod(name, ASK_NODE.replace("TIMEOUT", seconds))
        asker["metadata"]["labels"] = {"app": "asker"}
        apply(kubectl, asker)
        kubectl.wait_phase(name, "Succeeded")
        return kubectl("logs", name).splitlines()

    locked = policy("locked", policyTypes=["Egress"], podSelector={"matchLabels": {"app": "asker"}})
    apply(kubectl, locked)
    assert reached("30") == ["name server", "API"]
    kubectl("label", "namespace", "default", "policies.sampan.dev/cover-node=true")
    try:
        eventually(lambda: reached("2") == [])
        locked["spec"]["egress"] = [{"to": [KUBE_DNS]}]
        apply(kubectl, locked)
        eventually(lambda: reached("5") == ["name server"])
    finally:
        kubectl("label", "namespace", "default", "policies.sampan.dev/cover-node-")
        kubectl("delete", "networkpolicy", "locked")


# Says a line over one connection again and again, and what became of it.
TALK = """
import socket, time
while True:
    try:
        there = socket.create_connection(("ADDRESS", 8081))
        break
    except OSError:
        time.sleep(0.1)
there.settimeout(3)
state = ""
while True:
    try:
        there.send(b"x")
        now = "heard" if there.recv(1) else "closed"
    except TimeoutError:
        now = "cut off"
    if now != state:
        print(now, flush=True)
    state = now
    if now == "closed":
        break
"""
ECHO = """
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while said := self.request.recv(1):
            self.request.sendall(said)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
Server(("", 8081), Echo).serve_forever()
"""


def test_a_policy_that_changes_holds_for_a_connection_that_is_open(lone_cluster):
    """One connection: heard, cut off by a policy, and heard again when the policy is gone."""
    kubectl = lone_cluster.kubectl
    echo = python_pod("echo", ECHO, restartPolicy="Always")
    echo["metadata"]["labels"] = {"app": "echo"}
    apply(kubectl, echo)
    address = kubectl.get("pod", "echo")["status"]["podIP"]
    talker = python_pod("talker", TALK.replace("ADDRESS", address), restartPolicy="Always")
    apply(kubectl, talker)

    def states():
        return kubectl("logs", "talker").splitlines()

    eventually(lambda: states() == ["heard"], 60)
    deny = policy("closed")
    deny["spec"]["podSelector"] = {"matchLabels": {"app": "echo"}}
    apply(kubectl, deny)
    eventually(lambda: states() == ["heard", "cut off"], 60)
    kubectl("delete", "networkpolicy", "closed")
    eventually(lambda: states() == ["heard", "cut off", "heard"], 120)
    kubectl("delete", "pod", "talker", "echo", "--now")


def test_why_names_the_policy_that_refuses(lone_cluster):
    kubectl = lone_cluster.kubectl
    apply(kubectl, pod("from", "sleep 1000"), pod("there", "sleep 1000", {"app": "there"}))
    deny = policy("deny-all")
    deny["spec"]["podSelector"] = {"matchLabels": {"app": "there"}}
    apply(kubectl, deny)
    apply(kubectl, service("there", [{"port": 80, "targetPort": 8080}], {"app": "there"}))

    def said(target):
        command = [*lone_cluster.where, *sampan_command("why", "pod/from", "--to", target),
                   "--kubeconfig", str(lone_cluster.kubeconfig)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
        assert done.returncode == 0, done.stderr
        return done.stdout

    eventually(lambda: "endpoint pod/there" in said("service/there:80"), 60)
    for target in ("there:80", "service/there:80"):
        assert "refused by NetworkPolicies" in said(target)
        assert "ingress: default/deny-all select(s) the pod" in said(target)
    kubectl("delete", "service", "there")
    kubectl("delete", "networkpolicy", "deny-all")
