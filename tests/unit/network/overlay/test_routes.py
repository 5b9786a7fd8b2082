import pytest

from sampan.network.overlay.routes import (
    Neighbourhood,
    PodRoute,
    changes,
    hardware_address,
    lost_routes,
    pod_mtu,
    pod_routes,
    tunnel_address,
)

NEAR = Neighbourhood(("192.0.2.0/24",))


def node(name, address, cidr, **meta):
    return {
        "metadata": {"name": name, **meta},
        "spec": {"podCIDR": cidr, "podCIDRs": [cidr]} if cidr else {},
        "status": {"addresses": [{"type": "InternalIP", "address": address}] if address else []},
    }


ME = node("a", "192.0.2.1", "10.244.0.0/24")


def routes(*others, mode="auto"):
    return pod_routes([ME, *others], ("a", ("192.0.2.1",)), NEAR, mode)


@pytest.mark.parametrize(
    ("mode", "address", "tunnel"),
    [
        ("auto", "192.0.2.2", False),
        ("auto", "198.51.100.2", True),
        ("host-gw", "198.51.100.2", False),
        ("vxlan", "192.0.2.2", True),
    ],
)
def test_neighbours_get_a_route_and_others_a_tunnel(mode, address, tunnel):
    found = routes(node("b", address, "10.244.1.0/24"), mode=mode)
    assert found == {"10.244.1.0/24": PodRoute("10.244.1.0/24", address, tunnel)}


@pytest.mark.parametrize(
    "other",
    [
        node("b", "", "10.244.1.0/24"),
        node("b", "192.0.2.2", ""),
        node("b", "192.0.2.1", "10.244.1.0/24"),
        node("b", "192.0.2.2", "10.244.0.0/24"),
        node("b", "192.0.2.2", "10.244.1.0/24", deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["no address", "no range", "same machine", "our own range", "on its way out"],
)
def test_no_route_leads_to_what_is_not_elsewhere(other):
    assert routes(other) == {}


def test_a_range_that_two_nodes_claim_is_routed_once():
    found = routes(node("c", "192.0.2.3", "10.244.1.0/24"), node("b", "192.0.2.2", "10.244.1.0/24"))
    assert found["10.244.1.0/24"].node == "192.0.2.2"


def test_only_what_differs_is_done():
    old, new = PodRoute("r1", "x", False), PodRoute("r1", "y", False)
    kept, gone = PodRoute("r2", "x", False), PodRoute("r3", "x", True)
    assert changes({"r1": old, "r2": kept, "r3": gone}, {"r1": new, "r2": kept}) == ([gone], [new])


def test_the_ends_of_a_tunnel_are_known_without_being_told():
    assert hardware_address("192.0.2.1").hex(":") == "0a:58:c0:00:02:01"
    assert tunnel_address("10.244.3.0/24") == "10.244.3.0"


@pytest.mark.parametrize(
    ("uplink", "mode", "mtu"),
    [(1500, "vxlan", 1450), (9000, "vxlan", 8950), (1460, "host-gw", 1460), (0, "vxlan", 0)],
)
def test_pods_send_what_fits_the_machine_s_network_and_the_tunnel(uplink, mode, mtu):
    assert pod_mtu(uplink, mode) == mtu


def dual(name, addresses, cidrs):
    listed = [{"type": "InternalIP", "address": each} for each in addresses]
    return {
        "metadata": {"name": name},
        "spec": {"podCIDR": cidrs[0], "podCIDRs": cidrs},
        "status": {"addresses": listed},
    }


BOTH_NEAR = Neighbourhood(("192.0.2.0/24", "2001:db8::/64"))
V4, V6 = "10.244.1.0/24", "fd00:10:244:1::/64"


@pytest.mark.parametrize(
    ("addresses", "mode", "found"),
    [
        (["192.0.2.2", "2001:db8::2"], "auto",
         {V4: ("192.0.2.2", False), V6: ("2001:db8::2", False)}),
        (["192.0.2.2", "2001:db8::2"], "vxlan", {V4: ("192.0.2.2", True), V6: ("192.0.2.2", True)}),
        (["192.0.2.2", "2001:db9::2"], "auto", {V4: ("192.0.2.2", False), V6: ("192.0.2.2", True)}),
        # A node that has no address of that family is reached through the other.
        (["192.0.2.2"], "auto", {V4: ("192.0.2.2", False), V6: ("192.0.2.2", True)}),
        (["192.0.2.2"], "host-gw", {V4: ("192.0.2.2", False)}),
    ],
)  # fmt: skip
def test_each_family_has_its_own_way(addresses, mode, found):
    own = ("a", ("192.0.2.1", "2001:db8::1"))
    me = dual("a", own[1], ["10.244.0.0/24", "fd00:10:244::/64"])
    other = dual("b", addresses, [V4, V6])
    routes = pod_routes([me, other], own, BOTH_NEAR, mode)
    assert {cidr: (each.node, each.tunnel) for cidr, each in routes.items()} == found


def test_a_tunnel_over_ipv6_takes_more_of_each_packet():
    assert pod_mtu(1500, "vxlan", "192.0.2.1") == 1450
    assert pod_mtu(1500, "vxlan", "2001:db8::1") == 1430
    assert pod_mtu(1500, "auto", "2001:db8::1") == 1500
    assert len(hardware_address("2001:db8::1")) == 6
    assert hardware_address("2001:db8::1") != hardware_address("2001:db8::2")
    assert tunnel_address(V6) == "fd00:10:244:1::"


def test_a_route_that_the_kernel_has_no_more_is_lost():
    straight = PodRoute("10.244.1.0/24", "192.0.2.2", tunnel=False)
    tunnelled = PodRoute("10.244.2.0/24", "198.51.100.2", tunnel=True)
    known = {route.cidr: route for route in (straight, tunnelled)}
    both = {("10.244.1.0/24", "192.0.2.2"), ("10.244.2.0/24", "10.244.2.0")}
    assert lost_routes(known, known, both) == []
    assert lost_routes(known, known, both - {("10.244.1.0/24", "192.0.2.2")}) == [straight]
    assert lost_routes(known, known, {("10.244.1.0/24", "192.0.2.9")}) == [straight, tunnelled]
    assert lost_routes({}, known, set()) == [], "never set: that is another matter"
    assert lost_routes(known, {}, set()) == []


@pytest.mark.parametrize("said", ["x", "1.2.3.4; flush ruleset", "fe80::1%}", "", "1.2.3", "²"])
def test_a_node_that_says_nonsense_takes_nobody_else_s_routes(said):
    good = node("b", "192.0.2.2", "10.244.1.0/24")
    mad = node("c", said, "10.244.2.0/24"), node("d", "192.0.2.9", said)
    assert routes(good, *mad) == routes(good)
