from sampan.network.policies.compiled import Ports, compile_policy


def policy(**spec):
    return {"metadata": {"name": "p", "namespace": "x"}, "spec": {"podSelector": {}, **spec}}


def test_without_types_egress_is_isolated_only_where_there_are_rules_for_it():
    assert compile_policy(policy()).ingress == ()
    assert compile_policy(policy()).egress is None
    assert compile_policy(policy(egress=[{}])).egress is not None


def test_a_policy_that_changes_is_another_one():
    assert compile_policy(policy()).id == compile_policy(policy()).id
    assert compile_policy(policy()).id != compile_policy(policy(ingress=[{}])).id


def test_ranges_of_ports_do_not_overlap():
    ports = [{"port": 80}, {"port": 70, "endPort": 90}, {"port": 91}, {"port": 95}]
    [rule] = compile_policy(policy(ingress=[{"ports": ports}])).ingress
    assert rule.ports == (Ports("TCP", ((70, 91), (95, 95))),)


def test_a_protocol_without_a_port_is_every_port_of_it():
    [rule] = compile_policy(policy(ingress=[{"ports": [{"protocol": "UDP"}, {"protocol": "UDP",
                      "port": 1}]}])).ingress  # fmt: skip
    assert rule.ports == (Ports("UDP", ()),)
