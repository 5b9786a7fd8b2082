from dataclasses import replace

import pytest

from sampan.network.services import ruleset
from sampan.network.services.ruleset import ProxyPlace

PLACE = ProxyPlace(
    "sampan0-pods", "sampan0", ("10.244.0.0/16", "fd00:244::/56"), ("10.96.0.0/12", "fd00::/112"),
    "sampan*", ("10.244.3.0/24",),
)  # fmt: skip


def rules(script, chain):
    lines = [line.split() for line in script.splitlines()]
    return [" ".join(words[5:]) for words in lines if words[:2] == ["add", "rule"] and
            words[4] == chain]  # fmt: skip


@pytest.mark.parametrize("family", ["ip", "ip6"])
def test_every_map_that_a_service_has_elements_in_is_declared(family):
    script = ruleset.skeleton(family, PLACE)
    for name in [*ruleset.shapes(family), *ruleset.slot_names(0)]:
        assert f"add map {family} sampan0-pods {name} " in script or (
            f"add set {family} sampan0-pods {name} " in script
        )


def test_what_is_left_for_the_service_range_is_refused_before_it_is_routed():
    script = ruleset.skeleton("ip", PLACE)
    assert rules(script, "refuse-prerouting") == ["jump refused"]
    assert rules(script, "filter-output") == ["jump refused"]
    assert rules(script, "refused")[-1] == "ip daddr 10.96.0.0/12 reject"


def test_ranges_that_overlap_are_refused_as_the_addresses_that_they_have():
    """nft takes no set whose intervals overlap, and two ServiceCIDRs may."""
    ranges = ("10.96.0.0/12", "10.96.8.0/24", "192.0.2.0/25", "192.0.2.128/25", "fd00::/112")
    script = ruleset.refusals("ip", replace(PLACE, service_cidrs=ranges))
    assert script.startswith("flush chain ip sampan0-pods refused\n")
    assert rules(script, "refused")[-1] == "ip daddr { 10.96.0.0/12, 192.0.2.0/24 } reject"


def test_pods_carry_the_node_s_address_only_beyond_the_cluster():
    script = ruleset.skeleton("ip", PLACE)
    [leaving] = [rule for rule in rules(script, "nat-postrouting") if "saddr 10.244.3" in rule]
    assert leaving == (
        "ip saddr 10.244.3.0/24 ip daddr != { 10.244.0.0/16, 224.0.0.0/4 } "
        'oifname != "sampan0" masquerade'
    )


def test_pods_of_another_cluster_on_the_machine_are_not_ours():
    first = rules(ruleset.skeleton("ip", PLACE), "nat-prerouting")[0]
    assert first == 'iifname "sampan*" iifname != "sampan0" return'


def test_a_chain_picks_one_of_its_number():
    script = ruleset.pick_chains("ip", PLACE, ["external-2"])
    assert rules(script, "external-2")[-1] == (
        "numgen random mod 2 vmap { 0 : goto endpoints-0, 1 : goto endpoints-1 }"
    )
    assert "meta mark set" in rules(script, "external-2")[0]
    assert "ip saddr != 10.244.0.0/16 meta mark set" in ruleset.pick_chains(
        "ip", PLACE, ["cluster-1"]
    )
    assert "mark" not in ruleset.pick_chains("ip", PLACE, ["local-1"])


def test_a_chain_is_written_anew_not_added_to():
    for script in (ruleset.skeleton("ip", PLACE), ruleset.pick_chains("ip", PLACE, ["local-1"])):
        chains = {line.split()[4] for line in script.splitlines() if line.startswith("add rule")}
        flushed = {line.split()[4] for line in script.splitlines() if line.startswith("flush")}
        assert chains <= flushed


def test_shapes_of_slots_follow_their_names():
    assert len(ruleset.shape_of("ip", ruleset.slot_name(ruleset.LOCAL_NODE_PORT, 7)).key) == 2
    assert len(ruleset.shape_of("ip", ruleset.slot_name(ruleset.CLUSTER, 7)).key) == 3


def test_addresses_for_pods_are_closed_to_who_comes_by_an_uplink_where_pods_come_by_any():
    place = ProxyPlace("t", "sampan0", gateways=("198.19.0.1",), uplinks=("eth0", "eth1"))
    [guard] = rules(ruleset.skeleton("ip", place), "guard-input")
    assert 'iifname { "eth0", "eth1" } ip daddr 198.19.0.1' in guard
    assert guard.endswith("drop")
