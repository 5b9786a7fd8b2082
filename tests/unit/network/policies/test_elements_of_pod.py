"""The rules as a packet meets them, against a naive judge [W4]."""

import ipaddress
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.network.policies import ruleset
from sampan.network.policies.compiled import EGRESS, INGRESS, compile_policy
from sampan.network.policies.elements_of_pod import (
    elements_of_pod,
    name_server_view,
    pod_view,
    selecting,
)
from tests.support.generators import random_policies as generated

NODE = "192.0.2.1"


class Kernel:
    """As much of nftables as these rules use."""

    def __init__(self, policies, pods, family, namespaces=generated.NAMESPACES):
        self.chains, self.elements = {}, {}
        read = [compile_policy(policy) for policy in policies]
        for policy in read:
            self.load(ruleset.policy_script(family, "t", policy).lines)
        for pod in pods:
            view = pod_view(pod, "n1")
            self.add(view, read, family, namespaces)
        self.add(name_server_view([NODE]), read, family, namespaces)

    def add(self, view, read, family, namespaces):
        if view.local:
            for direction in (INGRESS, EGRESS):
                if mine := selecting(view, read, direction):
                    self.load(ruleset.combination_script(family, "t", mine, direction))
        self.elements |= elements_of_pod(view, read, namespaces, family)

    def load(self, lines):
        for line in lines:
            verb, kind, _, _, name, *rest = line.split()
            if (verb, kind) == ("flush", "chain"):
                self.chains[name] = []
            elif (verb, kind) == ("add", "rule"):
                self.chains[name].append(" ".join(rest))

    def lets_through(self, source, target, protocol, port):
        packet = {"saddr": source, "daddr": target, "protocol": protocol, "port": port}
        for direction, own in ((EGRESS, source), (INGRESS, target)):
            verdict = self.elements.get((ruleset.MAPS[direction], (own,)))
            if verdict is not None and self.walk(verdict.chain, packet) != "accept":
                return False
        return True

    def lets_to_node(self, source, protocol, port):
        packet = {"saddr": source, "daddr": NODE, "protocol": protocol, "port": port}
        verdict = self.elements.get((ruleset.TO_NODE, (source,)))
        return verdict is None or self.walk(verdict.chain, packet) == "accept"

    def walk(self, chain, packet):
        for rule in self.chains[chain]:
            if rule == "drop":
                return "drop"
            match, jumps, chain = rule.rpartition("jump ")
            if jumps:
                if self.matches(match, packet) and self.walk(chain, packet) == "accept":
                    return "accept"
            elif self.matches(rule.removesuffix("accept").strip(), packet):
                return "accept"
        return ""

    def matches(self, rule, packet):
        address, rule = ipaddress.ip_address, rule.strip()
        while rule:
            if found := re.match(r"ip6? (saddr|daddr) (!= )?\{ ([^}]*) \}", rule):
                own = address(packet[found[1]])
                inside = any(own in ipaddress.ip_network(e) for e in found[3].split(", "))
                held = inside != bool(found[2])
            elif found := re.match(r"ip6? daddr \. meta l4proto \. th dport @(\S+)", rule):
                key = (packet["daddr"], packet["protocol"], packet["port"])
                held = (found[1], key) in self.elements
            elif found := re.match(r"ip6? (saddr|daddr) @(\S+)", rule):
                held = (found[2], (packet[found[1]],)) in self.elements
            elif found := re.match(r"ip6? (saddr|daddr) (\S+)", rule):
                held = address(packet[found[1]]) in ipaddress.ip_network(found[2])
            elif found := re.match(r"meta l4proto (\{[^}]*\}|\S+)", rule):
                held = packet["protocol"].lower() in re.findall(r"\w+", found[1])
            elif found := re.match(r"th dport \{ ([^}]*) \}", rule):
                ranges = [part.split("-") for part in found[1].split(", ")]
                held = any(int(part[0]) <= packet["port"] <= int(part[-1]) for part in ranges)
            else:
                raise AssertionError(rule)
            if not held:
                return False
            rule = rule[found.end() :].strip()
        return True


@pytest.mark.slow
@given(
    st.integers(0, 2**32),
    st.sampled_from([("ip", generated.SUBNET), ("ip6", generated.SUBNET_IPV6)]),
)
def test_every_pair_of_pods_may_do_what_a_naive_judge_says(seed, network):
    family, subnet = network
    policies = generated.random_policies(random.Random(seed), subnet)
    pods = generated.pods(subnet)
    kernel = Kernel(policies, pods, family)
    for source in pods:
        for target in pods:
            if source is target:
                continue
            ends = [pod["status"]["podIPs"][0]["ip"] for pod in (source, target)]
            for protocol in generated.PROTOCOLS:
                for port in generated.PORTS:
                    may = generated.is_allowed(policies, source, target, protocol, port)
                    assert kernel.lets_through(*ends, protocol, port) is may


def pod(**fields):
    base = {"metadata": {"name": "p", "namespace": "x"}, "spec": {}, "status": {}}
    return base | fields


@pytest.mark.parametrize(
    "ignored",
    [
        pod(),
        pod(spec={"hostNetwork": True}, status={"podIP": "10.0.0.1"}),
        pod(status={"podIP": "10.0.0.1", "phase": "Succeeded"}),
    ],
)
def test_pods_without_an_address_of_their_own_are_not_judged(ignored):
    assert pod_view(ignored, "n1") is None


def test_a_pod_that_starts_here_is_judged_before_the_api_knows_its_address():
    view = pod_view(pod(), "n1", ["10.244.0.9"])
    assert view.local
    deny = {"metadata": {"name": "d", "namespace": "x"}, "spec": {"podSelector": {}}}
    found = elements_of_pod(view, [compile_policy(deny)], {}, "ip")
    assert [name for name, _ in found] == ["policy-ingress"]


SENDER = pod(spec={"nodeName": "n1"}, status={"podIP": "10.0.0.1"})
TO_KUBE_DNS = {
    "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}],
    "ports": [{"protocol": "UDP", "port": 53}],
}  # fmt: skip
NAMED = {"protocol": "UDP", "port": "dns"}
BY_ADDRESS = {"to": [{"ipBlock": {"cidr": f"{NODE}/32"}}], "ports": [{"port": 6443}]}


@pytest.mark.parametrize(
    ("label", "egress", "allowed"),
    [
        ({}, [], {("UDP", 53), ("TCP", 6443)}),
        ({ruleset.COVER_NODE: "false"}, [], {("UDP", 53), ("TCP", 6443)}),
        ({ruleset.COVER_NODE: "true"}, [], set()),
        ({ruleset.COVER_NODE: "true"}, [TO_KUBE_DNS], {("UDP", 53)}),
        ({ruleset.COVER_NODE: "true"}, [{"to": TO_KUBE_DNS["to"]}], {("UDP", 53)}),
        ({ruleset.COVER_NODE: "true"}, [{"to": [{"podSelector": {}}]}], set()),
        ({ruleset.COVER_NODE: "true"}, [{"ports": [NAMED]}], {("UDP", 53)}),
        ({ruleset.COVER_NODE: "true"}, [BY_ADDRESS], {("TCP", 6443)}),
        ({ruleset.COVER_NODE: "true"}, None, {("UDP", 53), ("TCP", 6443)}),
    ],
)
def test_a_namespace_says_whether_egress_policies_cover_the_pods_own_node(label, egress, allowed):
    types = ["Ingress"] if egress is None else ["Egress"]
    spec = {"podSelector": {}, "policyTypes": types, "egress": egress or []}
    namespaces = {"x": label, "kube-system": {"kubernetes.io/metadata.name": "kube-system"}}
    kernel = Kernel([pod(spec=spec)], [SENDER], "ip", namespaces)
    asked = {("UDP", 53), ("TCP", 6443)}
    assert {each for each in asked if kernel.lets_to_node("10.0.0.1", *each)} == allowed


def test_what_goes_to_the_node_asks_where_it_comes_in():
    lines = ruleset.skeleton("ip", "t").splitlines()
    assert any("chain ip t hook-egress-node { type filter hook input" in line for line in lines)
    assert lines[-1] == "add rule ip t hook-egress-node ip saddr vmap @policy-egress-node"
