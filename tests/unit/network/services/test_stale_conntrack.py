from sampan.network.nftables.elements import Verdict
from sampan.network.services.stale_conntrack import (
    StaleEndpoints,
    stale_affinity,
    stale_clients,
    stale_udp,
)

DNS = ("10.96.0.10", "UDP", 53)
WEB = ("10.96.0.5", "TCP", 80)


def to(service, *endpoints, sticky=False):
    found = {(f"endpoints-{slot}", service): (each, 53) for slot, each in enumerate(endpoints)}
    if sticky:
        found["affinity-ips", service] = Verdict("affinity-10800")
    return found


def served(*endpoints):
    return {DNS: frozenset((each, 53) for each in endpoints)}


def test_udp_connections_to_an_endpoint_that_no_longer_serves_are_stale():
    [stale] = stale_udp(served("a", "b"), served("b", "c"))
    assert stale == StaleEndpoints(DNS, served("b", "c")[DNS])
    assert stale_udp(served("a"), served("a", "b")) == []


def test_udp_connections_from_before_anybody_served_are_stale():
    """A client that keeps sending is led to the endpoint that there is now."""
    assert stale_udp({}, served("a")) == [StaleEndpoints(DNS, frozenset({("a", 53)}))]


def test_where_nobody_serves_nothing_is_forgotten():
    assert stale_udp(served("a"), {}) == []


def test_clients_stay_only_with_endpoints_that_are_left():
    before, after = to(WEB, "a", "b", sticky=True), to(WEB, "b", sticky=True)
    stale = stale_affinity(before, after)
    remembered = [
        (("c1", *WEB), ("a", 53)),
        (("c2", *WEB), ("b", 53)),
        (("c3", *DNS), ("a", 53)),
    ]
    assert stale_clients(stale, remembered) == [("c1", *WEB)]


def test_affinity_that_is_switched_off_forgets_every_client():
    stale = stale_affinity(to(WEB, "a", sticky=True), to(WEB, "a"))
    assert stale_clients(stale, [(("c1", *WEB), ("a", 53))]) == [("c1", *WEB)]
    assert stale_affinity(to(WEB, "a", sticky=True), to(WEB, "a", "b", sticky=True)) == []


def test_clients_of_a_node_port_are_known_by_protocol_and_port():
    port = ("TCP", 30080)
    before = {
        ("nodeport-endpoints-0", port): ("a", 53),
        ("affinity-nodeports", port): Verdict("affinity-5"),
    }
    stale = stale_affinity(before, {})
    assert stale_clients(stale, [(("c1", "192.0.2.1", *port), ("a", 53))]) == [
        ("c1", "192.0.2.1", *port)
    ]
