from dataclasses import replace

import pytest

from sampan.network.policies.compiled import (
    MOST_SETS,
    Ports,
    bounded,
    closed,
    compile_policy,
    sets_needed,
)


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


PODS, NAMED = [{"podSelector": {}}], [{"port": "web"}]
RULES = {
    "peers": ({"ingress": [{"from": PODS}] * 3000}, 3000),
    "names of ports": ({"ingress": [{"ports": NAMED}] * 3000}, 3000),
    "both": ({"ingress": [{"from": PODS, "ports": NAMED}] * 2000}, 4000),
    "egress": ({"egress": [{"to": PODS}] * 2000}, 4000),
    "blocks": ({"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}] * 9000}, 0),
}


@pytest.mark.parametrize("rules", RULES)
def test_of_a_namespace_that_needs_too_many_sets_the_last_rules_let_nothing_through(rules):
    spec, needed = RULES[rules]
    wanted = compile_policy(policy(**spec))
    assert sets_needed(wanted) == needed
    neighbour = replace(wanted, namespace="other", key="other/p")
    few = compile_policy(policy(ingress=[{"from": PODS}], egress=[]))
    kept = bounded([wanted, neighbour, few])
    assert [sets_needed(one) for one in kept[:2]] == [min(needed, MOST_SETS)] * 2
    assert kept[0].rules("ingress") == (wanted.ingress or ())[: len(kept[0].ingress or ())]
    if needed > MOST_SETS:
        assert kept[0].id != wanted.id
        assert kept[2].ingress == ()
    else:
        assert kept == [wanted, neighbour, few]
    # Who was isolated is isolated.
    for before, after in zip([wanted, neighbour, few], kept, strict=True):
        assert (before.ingress is None, before.egress is None) == (
            after.ingress is None, after.egress is None,
        )  # fmt: skip


def test_a_closed_policy_isolates_and_lets_nothing_through():
    wanted = compile_policy(policy(ingress=[{}], egress=[{}]))
    assert (closed(wanted).ingress, closed(wanted).egress) == ((), ())
    assert closed(compile_policy(policy(ingress=[{}]))).egress is None
    assert closed(wanted).id != wanted.id
