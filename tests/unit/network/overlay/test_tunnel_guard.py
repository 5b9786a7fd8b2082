from sampan.network.overlay.tunnel_guard import TunnelEnds, script


def test_ranges_that_overlap_are_one():
    """nft refuses them, and then nobody would be guarded."""
    ends = TunnelEnds(("192.0.2.1",), ("10.244.0.0/24",),
                      ranges=frozenset({"10.244.0.0/16", "10.244.3.0/24"}))  # fmt: skip
    assert "tunnel-ranges { 10.244.0.0/16 }" in script("ip", "t", "vx", ends)


def test_packets_outside_and_inside_may_be_of_different_families():
    ends = TunnelEnds(("192.0.2.1",), ("fd00::/64",), frozenset({"192.0.2.2"}),
                      frozenset({"fd00:1::/64"}))  # fmt: skip
    assert ends.families == ("ip", "ip6")
    assert "192.0.2.2" in script("ip", "t", "vx", ends)
    assert "192.0.2.2" not in script("ip6", "t", "vx", ends)
    assert 'iifname "vx" ip6 saddr fd00::/64 drop' in script("ip6", "t", "vx", ends)
