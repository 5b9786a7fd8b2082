"""Three machines on one network, real containerd on each [W5, W6]."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.parts.kubectl import KubectlFailure
from tests.support.parts.machines import machines
from tests.support.parts.network_pods import (
    apply,
    ask_by_udp_from_pod,
    ask_from,
    ask_from_pod,
    cluster_ip,
    server,
    service,
)
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import RUNTIME, SampanProcess, environment, sampan_command

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


class Joined:
    """A node that came by `sampan join`; of its cluster's ranges and mode it is told by the API."""

    def __init__(self, root, machine, name, line):
        self.machine, self.name = machine, name
        self.data_dir, self._ready = root / name, root / f"{name}.ready"
        _, *join = line.split()
        self._command = [
            *machine.where, *sampan_command(*join), "--data-dir", str(self.data_dir),
            "--node-name", name, "--ready-file", str(self._ready),
        ]  # fmt: skip
        self._output = root / f"{name}.out"
        self.start()

    def start(self):
        self._ready.unlink(missing_ok=True)
        self.program = Program(self._command, self._output, environment())
        self.program.wait_until(self._ready.exists)

    def run(self, verb, *arguments):
        command = [*self.machine.where, *sampan_command(verb), *arguments]
        subprocess.run([*command, "--data-dir", str(self.data_dir)], check=True, timeout=60,
                       capture_output=True, env=environment())  # fmt: skip

    def end(self):
        self.program.stop(60)
        self.run("reset", "--yes")
        assert "sampan" not in self.machine.run("ip", "route")
        assert "sampan" not in self.machine.run("nft", "list", "tables")
        assert "sampan" not in self.machine.run("ip", "link")


BOTH = ("--ip-families", "ipv4,ipv6")
OTHER_RANGES = (
    "--cluster-cidr", "10.40.0.0/16,fd00:40::/56", "--service-cidr", "10.50.0.0/16,fd00:50::/112",
)  # fmt: skip


@pytest.fixture(params=[("auto", *BOTH), ("vxlan", *OTHER_RANGES)], ids=lambda flags: flags[0])
def world(request, archive):
    """A cluster on the first machine, and two that joined it."""
    root = Path(tempfile.mkdtemp(prefix="sampan-3m-"))
    with machines(3) as [first, *others]:
        flags = ("--runtime", RUNTIME, "--bind-address", "0.0.0.0", "--node-name", "one",
                 "--network", *request.param)  # fmt: skip
        cluster = SampanProcess(root, *flags, where=first.where).up()
        joined = []
        try:
            assert "other machines reach the API" in cluster.output.read_text()
            cluster.run("image", "import", str(archive))
            line = cluster.run("token", "create")
            for machine, name in zip(others, ("two", "three"), strict=True):
                joined.append(Joined(root, machine, name, line))
                joined[-1].run("image", "import", str(archive))
            yield cluster, first, joined
            cluster.kubectl("delete", "pods", "--all", "--now")
        finally:
            for node in joined:
                node.end()
            cluster.stop()
            cluster.reset()
            assert "sampan" not in first.run("ip", "route")
            shutil.rmtree(root)


def ready(kubectl, name):
    conditions = kubectl.get("node", name)["status"]["conditions"]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_pods_on_three_machines_are_one_network(world):
    cluster, first, joined = world
    kubectl = cluster.kubectl
    for name in ("two", "three"):
        eventually(lambda name=name: ready(kubectl, name), 60)
    ranges = [cidr for node in kubectl.get("nodes")["items"] for cidr in node["spec"]["podCIDRs"]]
    assert len(set(ranges)) == 6
    for node in joined:
        assert _uses(node.machine, first)
    labels = {"app": "spread"}
    pods = [server(f"on-{name}", labels, nodeName=name) for name in ("one", "two", "three")]
    ports = [
        {"name": "tcp", "port": 80, "targetPort": 8080, "nodePort": 30090},
        {"name": "udp", "port": 80, "targetPort": 8080, "protocol": "UDP"},
    ]
    spread = service("spread", ports, labels, type="NodePort", ipFamilyPolicy="PreferDualStack")
    apply(kubectl, *pods, spread)
    everywhere = {"on-one", "on-two", "on-three"}
    both = {
        name: [each["ip"] for each in kubectl.get("pod", name)["status"]["podIPs"]]
        for name in sorted(everywhere)
    }
    addresses = {name: first for name, [first, _] in both.items()}
    for machine in (first, *(node.machine for node in joined)):
        for name, mine in both.items():
            for address in mine:
                eventually(lambda m=machine, a=address, n=name: ask_from(m, a, 8080) == n, 60)
    cluster_address, second_address = kubectl.get("service", "spread")["spec"]["clusterIPs"]
    for machine in (first, *(node.machine for node in joined)):
        for address, port in ((cluster_address, 80), (second_address, 80), (machine.address, 30090),
                              (machine.address_ipv6, 30090)):  # fmt: skip
            seen = set()
            eventually(
                lambda m=machine, a=address, p=port, s=seen: (
                    s.add(ask_from(m, a, p)) or everywhere <= s
                ),
                60,
            )
    # A pod sees another pod's own address, not its node's.
    assert ask_from_pod(kubectl, "on-one", addresses["on-two"], 8080) == "on-two"
    for mine, theirs in zip(both["on-one"], both["on-three"], strict=True):
        said = kubectl("exec", "on-one", "--", "sh", "-c", f"nc {theirs} 8080 </dev/null")
        assert said.split() == ["on-three", mine]
    assert ask_by_udp_from_pod(kubectl, "on-one", cluster_address, 80) in everywhere
    # The node's own server has a certificate of the cluster's authority soon after it joined.
    eventually(lambda: _said(kubectl, "exec", "on-three", "--", "hostname") == "on-three")
    assert ask_from_pod(kubectl, "on-three", cluster_address, 80) in everywhere
    _local_traffic_stays_local(kubectl, first, joined)
    _node_is_cut_off_and_comes_back(kubectl, joined[1], both["on-one"])
    _node_leaves_and_comes_back(kubectl, first, joined[0], addresses["on-two"])


def _uses(machine, first):
    """The same service range leads to the bridges, and the same sort of ways to other nodes."""
    services = {_service_route(each) for each in (machine, first)}
    tunnels = {"vxlan" in each.run("ip", "-d", "link") for each in (machine, first)}
    return len(services) == len(tunnels) == 1


def _service_route(machine):
    [route] = [line.split()[0] for line in machine.run("ip", "route").splitlines()
               if line.startswith(("10.96.0.0/12 ", "10.50.0.0/16 "))]  # fmt: skip
    return route


def _local_traffic_stays_local(kubectl, first, joined):
    """externalTrafficPolicy Local: the endpoint's own node answers, and is told who asks."""
    two, three = (node.machine for node in joined)
    kubectl("label", "pod", "on-two", "local=yes")
    local = service(
        "local", [{"port": 81, "targetPort": 8080, "nodePort": 30091}], {"local": "yes"},
        type="LoadBalancer", externalTrafficPolicy="Local",
    )  # fmt: skip
    apply(kubectl, local)
    health = kubectl.get("service", "local")["spec"]["healthCheckNodePort"]

    def lines(machine):
        question = f"busybox nc -w 2 {machine.address} 30091 </dev/null 2>&1 || true"
        return three.run("sh", "-c", question).split()

    def is_healthy(machine):
        question = f"GET / HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 2 {machine.address} {health}"
        return three.run("sh", "-c", f"printf '{question} 2>&1 || true").split()[1:2]

    eventually(lambda: lines(two) == ["on-two", three.address], 60)
    eventually(lambda: "on-two" not in lines(first), 60)
    eventually(lambda: is_healthy(two) == ["200"], 60)
    eventually(lambda: is_healthy(first) == ["503"], 60)
    # Inside the cluster it is a Service like any other, from every node.
    inside = cluster_ip(kubectl, "local")
    eventually(lambda: ask_from_pod(kubectl, "on-one", inside, 81) == "on-two", 60)
    # Its load balancer's addresses are those of nodes that can serve.
    path = "jsonpath={.status.loadBalancer.ingress[*].ip}"
    eventually(lambda: kubectl("get", "service", "local", "-o", path) == two.address, 60)
    kubectl("delete", "service", "local")


def _said(kubectl, *words):
    try:
        return kubectl(*words).strip()
    except KubectlFailure as failure:
        return failure.stderr


def _node_is_cut_off_and_comes_back(kubectl, node, addresses):
    """Its link goes down, and with that go its routes; it comes back with its addresses."""
    machine = node.machine
    machine.run("ip", "link", "set", "eth0", "down")
    for address in addresses:
        assert ask_from(machine, address, 8080) != "on-one"
    machine.run("ip", "link", "set", "eth0", "up")
    machine.run("ip", "addr", "add", f"{machine.address_ipv6}/64", "dev", "eth0", "nodad")
    for address in addresses:
        eventually(lambda a=address: ask_from(machine, a, 8080) == "on-one", 60)
        eventually(lambda a=address: ask_from_pod(kubectl, "on-three", a, 8080) == "on-one", 60)
    eventually(lambda: ready(kubectl, "three"), 60)


def _node_leaves_and_comes_back(kubectl, first, node, address):
    """Its process is killed: its pods stay reachable; with its Node go the routes."""
    node.program.kill()
    assert ask_from(first, address, 8080) == "on-two"
    node.start()
    assert ask_from(first, address, 8080) == "on-two"
    range_ = kubectl.get("node", "two")["spec"]["podCIDR"]
    assert range_ in first.run("ip", "route")
    node.program.stop(60)
    kubectl("delete", "node", "two")
    eventually(lambda: range_ not in first.run("ip", "route"))
    node.start()
    eventually(lambda: range_ in first.run("ip", "route"), 60)
