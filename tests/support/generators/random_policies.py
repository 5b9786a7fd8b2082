"""Random NetworkPolicies, and a naive judge of what they allow.

Job: three namespaces of three pods, policies over them by Hypothesis or by a seed, and a verdict
    per connection that is read off the API's documentation, rule by rule, without any cleverness.
"""

import ipaddress
import random
from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj

NAMESPACES = {"x": {"ns": "x", "team": "a"}, "y": {"ns": "y", "team": "a"}, "z": {"ns": "z"}}
PODS = ("a", "b", "c")
PORTS = (80, 81)
PROTOCOLS = ("TCP", "UDP")
SUBNET, SUBNET_IPV6 = "10.244.0.0/24", "fd00:10:244::/64"


def pods(subnet: str = SUBNET, node_name: str = "n1") -> list[Obj]:
    network, found = ipaddress.ip_network(subnet), []
    for number, namespace in enumerate(NAMESPACES):
        for position, name in enumerate(PODS):
            found.append(
                {
                    "metadata": {
                        "name": name, "namespace": namespace,
                        "labels": {"pod": name, "side": "left" if name == "a" else "right"},
                    },
                    "spec": {
                        "nodeName": node_name,
                        "containers": [{"ports": [
                            # The same name stands for different ports.
                            {"name": "web", "containerPort": 80 + (position == 2),
                             "protocol": "TCP"},
                            {"name": "udp81", "containerPort": 81, "protocol": "UDP"},
                        ]}],
                    },
                    "status": {
                        "phase": "Running",
                        "podIPs": [{"ip": str(network[10 + number * 3 + position])}],
                    },
                }
            )  # fmt: skip
    return found


def random_policies(rng: random.Random, subnet: str = SUBNET, most: int = 4) -> list[Obj]:
    return [_policy(rng, f"p{number}", subnet) for number in range(rng.randint(0, most))]


def _policy(rng: random.Random, name: str, subnet: str) -> Obj:
    types = rng.choice([["Ingress"], ["Egress"], ["Ingress", "Egress"]])
    spec: Obj = {"podSelector": _selector(rng, "pod"), "policyTypes": types}
    for kind, peers in (("ingress", "from"), ("egress", "to")):
        if kind.capitalize() in types and rng.random() < 0.8:
            spec[kind] = [_rule(rng, peers, subnet) for _ in range(rng.randint(0, 2))]
    return {
        "metadata": {"name": name, "namespace": rng.choice(list(NAMESPACES))},
        "spec": spec,
    }


def _rule(rng: random.Random, peers: str, subnet: str) -> Obj:
    rule: Obj = {}
    if rng.random() < 0.8:
        rule[peers] = [_peer(rng, subnet) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.6:
        rule["ports"] = [_port(rng) for _ in range(rng.randint(1, 2))]
    return rule


def _peer(rng: random.Random, subnet: str) -> Obj:
    choice = rng.randrange(4)
    if choice == 0:
        network = ipaddress.ip_network(subnet)
        most = network.max_prefixlen
        size = rng.choice([most - 8, most - 3, most - 2])
        start = rng.choice([8, 16]) if size > most - 8 else 0
        block: Obj = {"cidr": f"{network[start]}/{size}"}
        if rng.random() < 0.5:
            block["except"] = [f"{network[start + rng.choice([0, 2])]}/{most - 1}"]
        return {"ipBlock": block}
    if choice == 1:
        return {"podSelector": _selector(rng, "pod")}
    if choice == 2:
        return {"namespaceSelector": _selector(rng, "ns")}
    return {"podSelector": _selector(rng, "pod"), "namespaceSelector": _selector(rng, "ns")}


def _selector(rng: random.Random, about: str) -> Obj:
    values = list(PODS) if about == "pod" else list(NAMESPACES)
    choice = rng.randrange(4)
    if choice == 0:
        return {}
    if choice == 1:
        return {"matchLabels": {about: rng.choice(values)}}
    if choice == 2:
        operator = rng.choice(["In", "NotIn"])
        return {"matchExpressions": [
            {"key": about, "operator": operator, "values": rng.sample(values, 2)}
        ]}  # fmt: skip
    key = "side" if about == "pod" else "team"
    return {"matchExpressions": [{"key": key, "operator": rng.choice(["Exists", "DoesNotExist"])}]}


def _port(rng: random.Random) -> Obj:
    choice = rng.randrange(4)
    protocol = rng.choice(PROTOCOLS)
    if choice == 0:
        return {"protocol": protocol}
    if choice == 1:
        return {"protocol": protocol, "port": rng.choice(PORTS)}
    if choice == 2:
        return {"protocol": protocol, "port": 79, "endPort": rng.choice([80, 90])}
    name = rng.choice(["web", "udp81", "nobody"])
    return {"protocol": "UDP" if name == "udp81" else "TCP", "port": name}


def is_allowed(policies: Sequence[Obj], source: Obj, target: Obj, protocol: str, port: int) -> bool:
    """May `source` open this connection to `target`?"""
    if source is target:
        return True
    return _direction(policies, source, target, target, "egress", protocol, port) and _direction(
        policies, target, source, target, "ingress", protocol, port
    )


def _direction(
    policies: Sequence[Obj], own: Obj, peer: Obj, target: Obj, kind: str, protocol: str, port: int
) -> bool:
    mine = [
        policy
        for policy in policies
        if kind.capitalize() in policy["spec"]["policyTypes"]
        and policy["metadata"]["namespace"] == own["metadata"]["namespace"]
        and _matches(policy["spec"]["podSelector"], own["metadata"]["labels"])
    ]
    if not mine:
        return True
    for policy in mine:
        for rule in policy["spec"].get(kind) or ():
            peers = rule.get("from" if kind == "ingress" else "to")
            peer_fits = not peers or any(_peer_fits(policy, each, peer) for each in peers)
            ports = rule.get("ports")
            named = (
                kind == "egress"
                and peers
                and not any(
                    _peer_fits(policy, each, peer) for each in peers if "ipBlock" not in each
                )
            )
            port_fits = not ports or any(
                _port_fits(each, target, protocol, port, names=not named) for each in ports
            )
            if peer_fits and port_fits:
                return True
    return False


def _peer_fits(policy: Obj, peer: Obj, pod: Obj) -> bool:
    if "ipBlock" in peer:
        address = ipaddress.ip_address(pod["status"]["podIPs"][0]["ip"])
        inside = address in ipaddress.ip_network(peer["ipBlock"]["cidr"])
        excepts = peer["ipBlock"].get("except") or ()
        return inside and not any(address in ipaddress.ip_network(each) for each in excepts)
    namespace = pod["metadata"]["namespace"]
    if "namespaceSelector" in peer:
        if not _matches(peer["namespaceSelector"], NAMESPACES[namespace]):
            return False
    elif namespace != policy["metadata"]["namespace"]:
        return False
    return _matches(peer.get("podSelector") or {}, pod["metadata"]["labels"])


def _port_fits(wanted: Obj, target: Obj, protocol: str, port: int, *, names: bool) -> bool:
    """A name is about pods; a block of addresses has none."""
    if wanted.get("protocol", "TCP") != protocol:
        return False
    number = wanted.get("port")
    if number is None:
        return True
    if isinstance(number, str):
        return names and any(
            each["name"] == number and each["containerPort"] == port
            and each["protocol"] == protocol
            for each in target["spec"]["containers"][0]["ports"]
        )  # fmt: skip
    first, last = int(number), int(wanted.get("endPort") or number)
    return first <= port <= last


def _matches(selector: Obj, labels: Mapping[str, str]) -> bool:
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions") or ():
        held = {
            "In": labels.get(each["key"]) in each.get("values", ()),
            "NotIn": labels.get(each["key"]) not in each.get("values", ()),
            "Exists": each["key"] in labels,
            "DoesNotExist": each["key"] not in labels,
        }[each["operator"]]
        if not held:
            return False
    return True
