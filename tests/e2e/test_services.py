"""Services through the node's rules, in a network namespace that the test made [W1]."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.parts.kubectl import KubectlFailure
from tests.support.parts.network_pods import (
    apply,
    ask_by_udp_from,
    ask_by_udp_from_pod,
    ask_from,
    ask_from_pod,
    cluster_ip,
    pod,
    python_pod,
    server,
    service,
)
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import environment, sampan_command

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
        eventually(lambda: seen.add(ask()) or {"web-a", "web-b"} <= seen)

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
            [*machine.where, *command], capture_output=True, text=True, timeout=60, check=False
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
        ask_by_udp_from(machine, address, 53)
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
        return urllib.request.urlopen(request, context=trust, timeout=60).status
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


def answers(ask, count=24):
    return [ask() for _ in range(count)]


@pytest.fixture(scope="module")
def pair(lone_cluster):
    """Two servers behind whatever Service a test makes."""
    labels = {"app": "pair"}
    apply(lone_cluster.kubectl, server("pair-a", labels), server("pair-b", labels),
          pod("asker", "sleep 1000"))  # fmt: skip
    return labels


BOTH = {"pair-a", "pair-b"}
ROLLOUTS = int(os.environ.get("SAMPAN_ROLLOUTS", "5"))


def ports(**fields):
    return [{"name": "tcp", "port": 80, "targetPort": 8080, **fields}]


def test_a_node_port_is_open_on_the_node_s_addresses_to_all(kubectl, pair, machine, outside):
    apply(kubectl, service("np", ports(nodePort=30080), pair, type="NodePort"))

    def seen(ask):
        return eventually(lambda: set(answers(ask)) == BOTH)

    seen(lambda: ask_from(outside, machine.address, 30080))
    seen(lambda: ask_from(machine, machine.address, 30080))
    seen(lambda: ask_from_pod(kubectl, "asker", machine.address, 30080))
    kubectl("delete", "service", "np")
    eventually(lambda: "refused" in ask_from(outside, machine.address, 30080))


def test_tcp_and_udp_on_one_port(kubectl, pair, machine):
    both = [
        {"name": "tcp", "port": 53, "targetPort": 8080},
        {"name": "udp", "port": 53, "targetPort": 8080, "protocol": "UDP"},
    ]
    apply(kubectl, service("both", both, pair))
    address = cluster_ip(kubectl, "both")
    eventually(lambda: ask_from_pod(kubectl, "asker", address, 53) in BOTH)
    assert ask_from(machine, address, 53) in BOTH
    assert ask_by_udp_from_pod(kubectl, "pair-a", address, 53) in BOTH
    assert ask_by_udp_from(machine, address, 53) in BOTH


# An SCTP INIT as the wire has it: most kernels have no sockets for it unless a module is loaded.
ASSOCIATE = """
import socket, struct, sys
def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
init = struct.pack("!BBHIIHHI", 1, 0, 20, 7, 65536, 1, 1, 7)
head = struct.pack("!HHI", int(sys.argv[3]), int(sys.argv[2]), 0)
checked = head + struct.pack("<I", crc32c(head + bytes(4) + init)) + init
sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)
sender.sendto(checked, (sys.argv[1], 0))
"""
LISTEN = """
import socket
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)
print("listening", flush=True)
while True:
    data = raw.recv(2000)
    sctp = data[(data[0] & 15) * 4 :]
    print("port", int.from_bytes(sctp[2:4], "big"), "chunk", sctp[12], flush=True)
"""


def test_sctp_goes_to_the_endpoints_port(kubectl, machine):
    labels = {"app": "sctp"}
    listener = python_pod("sctp", LISTEN, restartPolicy="Always")
    listener["metadata"]["labels"] = labels
    port = [{"name": "sctp", "port": 80, "targetPort": 8080, "protocol": "SCTP"}]
    apply(kubectl, listener, service("sctp", port, labels))
    address = cluster_ip(kubectl, "sctp")
    eventually(lambda: kubectl("logs", "sctp").startswith("listening"), 60)
    source_ports = iter(range(20000, 30000))

    def arrived():
        machine.run(sys.executable, "-c", ASSOCIATE, address, "80", str(next(source_ports)))
        return "port 8080 chunk 1\n" in kubectl("logs", "sctp")

    eventually(arrived, 60)
    assert "port 80 " not in kubectl("logs", "sctp")
    kubectl("delete", "pod/sctp", "service/sctp", "--now")


def test_a_client_stays_with_its_endpoint_while_it_is_told_to(kubectl, pair, machine):
    sticky = service("sticky", ports(), pair, sessionAffinity="ClientIP",
                     ipFamilyPolicy="RequireDualStack")  # fmt: skip
    apply(kubectl, sticky)
    both_families = kubectl.get("service", "sticky")["spec"]["clusterIPs"]
    assert [":" in address for address in both_families] == [False, True]

    def endpoints():
        """Who answers, of each family."""
        return [len(set(answers(lambda a=a: ask_from(machine, a, 80)))) for a in both_families]

    eventually(lambda: all(ask_from(machine, each, 80) in BOTH for each in both_families), 60)
    tables = machine.run("nft", "-a", "list", "tables")
    for _ in range(2):  # switched off and on again
        assert endpoints() == [1, 1]
        kubectl("patch", "service", "sticky", "-p", '{"spec": {"sessionAffinity": "None"}}')
        eventually(lambda: endpoints() == [2, 2], 60)
        kubectl("patch", "service", "sticky", "-p", '{"spec": {"sessionAffinity": "ClientIP"}}')
        eventually(lambda: endpoints() == [1, 1], 60)
    # What packets write into it is nobody's tampering: it is the same table, and nft can list it.
    assert machine.run("nft", "-a", "list", "tables") == tables
    assert "update @affinity" in machine.run("nft", "list", "ruleset")
    kubectl("delete", "service", "sticky")


def test_a_load_balancer_has_the_node_s_address_and_its_source_ranges(
    kubectl, pair, machine, outside
):
    balanced = service("lb", ports(port=8088), pair, type="LoadBalancer",
                       externalIPs=["198.51.100.77"])  # fmt: skip
    apply(kubectl, balanced)

    def ingress():
        return kubectl.get("service", "lb")["status"]["loadBalancer"].get("ingress")

    assert eventually(ingress) == [{"ip": machine.address, "ipMode": "VIP"}]
    eventually(lambda: ask_from(outside, machine.address, 8088) in BOTH)
    outside.run("ip", "route", "add", "198.51.100.77", "via", machine.address)
    assert ask_from(outside, "198.51.100.77", 8088) in BOTH
    outside.run("ip", "route", "del", "198.51.100.77")
    ranges = '{"spec": {"loadBalancerSourceRanges": ["%s"]}}'
    kubectl("patch", "service", "lb", "-p", ranges % "203.0.113.0/24")
    eventually(lambda: "timed out" in ask_from(outside, machine.address, 8088))
    kubectl("patch", "service", "lb", "-p", ranges % f"{outside.address}/32")
    eventually(lambda: ask_from(outside, machine.address, 8088) in BOTH)
    kubectl("delete", "service", "lb")


def test_policy_local_keeps_the_client_s_address_and_says_whether_it_can_serve(
    kubectl, pair, machine, outside
):
    local = service("local", ports(port=8089), pair, type="LoadBalancer",
                    externalTrafficPolicy="Local")  # fmt: skip
    apply(kubectl, local)
    port = kubectl.get("service", "local")["spec"]["healthCheckNodePort"]

    def client_seen():
        question = f"busybox nc -w 2 {machine.address} 8089 </dev/null || true"
        return outside.run("sh", "-c", question).split("\n")[1:2]

    eventually(lambda: client_seen() == [outside.address])

    def health():
        question = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 2 {machine.address} {port}"
        return outside.run("sh", "-c", question + " || true")

    assert '"localEndpoints":2' in eventually(health)
    kubectl("patch", "service", "local", "-p", '{"spec": {"selector": {"app": "nobody"}}}')
    eventually(lambda: "503" in health())
    # No node can serve: none is in the status any more.
    eventually(lambda: "refused" in ask_from(outside, machine.address, 8089))
    kubectl("delete", "service", "local")


def test_udp_clients_follow_when_their_endpoint_goes(kubectl, machine):
    labels = {"app": "moving"}
    udp = [{"name": "udp", "port": 53, "targetPort": 8080, "protocol": "UDP"}]
    apply(kubectl, server("moving-a", labels), service("moving", udp, labels))
    address = cluster_ip(kubectl, "moving")
    code = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"s.bind(('', 40053)); s.connect(('{address}', 53)); s.settimeout(0.5)\n"
        "for _ in range(200):\n"
        "    try:\n        s.send(b'x'); print(s.recv(99).decode().strip(), flush=True)\n"
        "    except OSError: pass\n"
        "    import time; time.sleep(0.05)\n"
    )
    eventually(lambda: ask_by_udp_from(machine, address, 53) == "moving-a")
    client = subprocess.Popen(
        [*machine.where, "python3", "-c", code], stdout=subprocess.PIPE, text=True
    )
    try:
        assert client.stdout.readline() == "moving-a\n"
        apply(kubectl, server("moving-b", labels))
        kubectl("delete", "pod", "moving-a", "--now")
        eventually(lambda: client.stdout.readline() == "moving-b\n")
    finally:
        client.kill()
        client.wait()
        client.stdout.close()


def test_killed_and_started_again_the_rules_stay_and_are_adopted(
    kubectl, pair, machine, lone_cluster
):
    apply(kubectl, service("kept", ports(), pair))
    address = cluster_ip(kubectl, "kept")
    eventually(lambda: ask_from(machine, address, 80) in BOTH)
    lone_cluster.kill()
    assert ask_from(machine, address, 80) in BOTH, "traffic goes on"
    lone_cluster.up()
    assert ask_from(machine, address, 80) in BOTH
    kubectl("delete", "service", "kept")
    eventually(lambda: "refused" in ask_from(machine, address, 80))


# Connects as fast as it can until its input ends, and says how many connections were refused or
# broke off.
LOAD = """
import socket, sys, threading, time
address, good, bad = sys.argv[1], 0, {}
reading = threading.Thread(target=sys.stdin.read)
reading.start()
while reading.is_alive():
    connection = socket.socket()
    connection.settimeout(5)
    try:
        connection.connect((address, 80))
        assert connection.recv(99)
        good += 1
    except (OSError, AssertionError) as error:
        bad[repr(error)] = bad.get(repr(error), 0) + 1
    connection.close()
    time.sleep(0.002)
print(good, bad)
"""


AT_ONCE = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
"""


def rolling(labels, *, grace):
    """A Deployment whose servers, told to end, go on for a moment: what is on its way arrives."""
    made = server("x", labels)
    container = made["spec"]["containers"][0]
    container["readinessProbe"] = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    if grace:
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": 1}}}
    else:
        # As the first process of its container it would not hear of SIGTERM.
        container["command"][-1] = AT_ONCE + container["command"][-1]
    made["spec"]["terminationGracePeriodSeconds"] = 5
    made["spec"].pop("restartPolicy")
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": labels["app"]},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}},
            "template": {"metadata": {"labels": labels}, "spec": made["spec"]},
        },
    }  # fmt: skip


def rolled_under_load(kubectl, machine, name, *, grace):
    """How many connections were good, and what happened to the others."""
    labels = {"app": name}
    apply(kubectl, rolling(labels, grace=grace), service(name, ports(), labels))
    kubectl("rollout", "status", f"deployment/{name}", "--timeout=60s", seconds=90.0)
    address = cluster_ip(kubectl, name)
    eventually(lambda: name in ask_from(machine, address, 80), 60)
    load = subprocess.Popen(
        [*machine.where, "python3", "-c", LOAD, address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        for turn in range(ROLLOUTS):
            patch = {"spec": {"template": {"metadata": {"annotations": {"turn": str(turn)}}}}}
            kubectl("patch", "deployment", name, "-p", json.dumps(patch))
            kubectl("rollout", "status", f"deployment/{name}", "--timeout=60s", seconds=90.0)
    finally:
        said, _ = load.communicate(timeout=60)
        kubectl("delete", f"deployment/{name}", f"service/{name}")
    good, _, bad = said.strip().partition(" ")
    return int(good), bad


@pytest.mark.timeout(240 + 20 * ROLLOUTS)
def test_rolling_updates_refuse_nobody(kubectl, machine):
    good, bad = rolled_under_load(kubectl, machine, "rolling", grace=True)
    print(f"{ROLLOUTS} rolling updates: {good} connections, not good: {bad}")
    assert good > 10 * ROLLOUTS
    assert bad == "{}"


@pytest.mark.skipif("SAMPAN_ROLLOUTS" not in os.environ, reason="only shows a figure")
@pytest.mark.timeout(240 + 20 * ROLLOUTS)
def test_rolling_updates_of_servers_that_end_at_once(kubectl, machine):
    """Without preStop a server is gone before all have heard that it goes: how many notice?"""
    good, bad = rolled_under_load(kubectl, machine, "abrupt", grace=False)
    print(f"{ROLLOUTS} rolling updates without grace: {good} connections, not good: {bad}")
    assert good > 10 * ROLLOUTS


@pytest.mark.parametrize("path", ["healthz", "livez"])
def test_load_balancers_ask_a_node_whether_its_proxy_works(lone_cluster, machine, path):
    answer = json.loads(fetched(machine, f"http://{machine.address}:10256/{path}"))
    assert answer["nodeEligible"] is True
    assert answer["lastUpdated"] <= answer["currentTime"]


def test_the_proxy_works_alone_against_an_api_server_elsewhere(
    kubectl, pair, lone_cluster, machine, tmp_path
):
    """Beside the node's own: its table holds the same, and Services that come later."""
    command = [*machine.where, *sampan_command("service-proxy"), "--kubeconfig",
               str(lone_cluster.kubeconfig), "--ready-file", str(tmp_path / "r"),
               "--healthz-bind-address", "127.0.0.1:10256"]  # fmt: skip
    proxy = Program(command, tmp_path / "out", environment())
    try:
        proxy.wait_until((tmp_path / "r").exists)
        assert '"nodeEligible":true' in fetched(machine, "http://127.0.0.1:10256/healthz")
        apply(kubectl, service("alone", ports(), pair))
        key = f"{cluster_ip(kubectl, 'alone')} . tcp . 80"
        table = ("nft", "list", "map", "ip", "sampan-proxy", "service-ips")
        eventually(lambda: f"{key} : goto cluster-2" in machine.run(*table))
        kubectl("delete", "service", "alone")
        eventually(lambda: key not in machine.run(*table))
    finally:
        proxy.stop()
        for family in ("ip", "ip6"):
            machine.run("nft", "delete", "table", family, "sampan-proxy")


WEB = """
import http.server, socket
class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = socket.gethostname().encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", 8080), Web).serve_forever()
"""
GATE = "example.com/open"


FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
except OSError as error:
    print(error)
"""


def fetched(machine, url):
    return machine.run(sys.executable, "-c", FETCH, url).strip()


class Ways:
    """Every way to what is behind a Service: does it lead to the pod of its name?"""

    def __init__(self, cluster, machine, name):
        self.cluster, self.machine, self.name = cluster, machine, name
        self.address = cluster_ip(cluster.kubectl, name)

    def by_cluster_ip(self):
        return fetched(self.machine, f"http://{self.address}/") == self.name

    def by_name(self):
        name = f"{self.name}-each.default.svc.cluster.local"
        kubectl = self.cluster.kubectl
        found = kubectl("exec", "asker", "--", "sh", "-c", f"nslookup {name} 2>&1 || true")
        return kubectl.get("pod", self.name)["status"]["podIP"] in found

    def by_api(self):
        return self.ask_api() == self.name

    def ask_api(self):
        path = f"/api/v1/namespaces/default/services/{self.name}:80/proxy/"
        try:
            return self.cluster.kubectl("get", "--raw", path)
        except KubectlFailure as failure:
            return failure.stderr

    def by_endpoint_slice(self):
        chosen = ("-l", f"kubernetes.io/service-name={self.name}")
        pieces = self.cluster.kubectl.get("endpointslices", *chosen)["items"]
        return [
            entry["targetRef"]["name"]
            for piece in pieces
            for entry in piece["endpoints"] or ()
            if entry["conditions"]["ready"]
        ] == [self.name]

    def open(self):
        ways = (self.by_cluster_ip, self.by_name, self.by_api, self.by_endpoint_slice)
        return [way.__name__ for way in ways if way()]


EVERY_WAY = ["by_cluster_ip", "by_name", "by_api", "by_endpoint_slice"]


def set_gate(cluster, name, status):
    patch = {"status": {"conditions": [{"type": GATE, "status": status}]}}
    words = ("patch", "pod", name, "--subresource=status", "-p", json.dumps(patch))
    command = [*cluster.where, *sampan_command(*words), "--kubeconfig", str(cluster.kubeconfig)]
    subprocess.run(command, env=environment(), check=True, capture_output=True, timeout=60)


def test_a_readiness_gate_opens_and_closes_every_way_to_a_service(
    kubectl, pair, machine, lone_cluster, tmp_path
):
    """ClusterIP, names, the API's proxy and EndpointSlices tell one truth; port-forward goes to a
    pod that runs, whether it is ready or not, as kubectl has it."""
    labels = {"app": "gated"}
    gated = python_pod("gated", WEB, restartPolicy="Always",
                       readinessGates=[{"conditionType": GATE}])  # fmt: skip
    gated["metadata"]["labels"] = labels
    each = service("gated-each", ports(), labels, clusterIP="None")
    apply(kubectl, gated, service("gated", ports(), labels), each)
    ways = Ways(lone_cluster, machine, "gated")
    eventually(lambda: ways.open() == [], 60)
    assert "no endpoints available for service" in ways.ask_api()
    set_gate(lone_cluster, "gated", "True")
    eventually(lambda: ways.open() == EVERY_WAY, 60)
    output = tmp_path / "forward"
    forward = kubectl.background("port-forward", "svc/gated", "18080:80", output=output)
    try:
        eventually(lambda: "Forwarding from 127.0.0.1" in output.read_text(), 60)
        assert fetched(machine, "http://127.0.0.1:18080/") == "gated"
    finally:
        forward.terminate()
        forward.wait()
    doors = kubectl.background("proxy", "--port=18001", output=output)
    try:
        path = "/api/v1/namespaces/default/services/gated:80/proxy/"
        eventually(lambda: fetched(machine, f"http://127.0.0.1:18001{path}") == "gated", 60)
    finally:
        doors.terminate()
        doors.wait()
    set_gate(lone_cluster, "gated", "False")
    eventually(lambda: ways.open() == [], 60)
    kubectl("delete", "pod/gated", "service/gated", "service/gated-each", "--now")
