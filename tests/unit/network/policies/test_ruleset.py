from sampan.network.policies.compiled import compile_policy
from sampan.network.policies.ruleset import MOST_PORTS, policy_script


def script_of(**spec):
    policy = {"metadata": {"name": "p", "namespace": "x"}, "spec": {"podSelector": {}, **spec}}
    return policy_script("ip", "t", compile_policy(policy)).lines


def block(number, **more):
    return {"ipBlock": {"cidr": f"10.{number >> 8 & 255}.{number & 255}.0/30", **more}}


def test_blocks_and_ports_are_asked_about_once_and_not_every_pair_of_them():
    blocks, ports = 2_000, 5_000
    rule = {
        "from": [*map(block, range(blocks)), {"podSelector": {}}],
        "ports": [
            {"protocol": protocol, "port": 2 * number + 1}
            for number in range(ports)
            for protocol in ("TCP", "UDP", "SCTP")
        ],
    }
    lines = script_of(ingress=[rule])
    assert len(lines) < 10 + 3 * ports / MOST_PORTS
    excepted = [
        block(number, **{"except": [f"10.{number >> 8 & 255}.{number & 255}.1/32"]})
        for number in range(blocks)
    ]
    lines = script_of(ingress=[{**rule, "from": excepted}])
    assert len(lines) < blocks + 10 + 3 * ports / MOST_PORTS
    assert sum(map(len, lines)) < 200 * blocks + 3 * 10 * ports


def test_blocks_within_each_other_are_one():
    cidrs = ("10.0.0.0/8", "10.1.0.0/16", "192.168.0.1/32", "192.168.0.0/32")
    lines = script_of(ingress=[{"from": [{"ipBlock": {"cidr": each}} for each in cidrs]}])
    assert lines[-1].endswith("ip saddr { 10.0.0.0/8, 192.168.0.0/31 } accept")
