import pytest

from sampan.network.nftables.other_firewalls import dropping_chains
from sampan.network.nftables.queries import BaseChain

INPUT, FORWARD = 1, 2
DROP, ACCEPT = 0, 1


def test_only_chains_that_drop_what_is_forwarded_are_named():
    chains = [
        BaseChain("inet", "firewalld", "filter_FORWARD", FORWARD, DROP),
        BaseChain("inet", "theirs", "in", INPUT, DROP),
        BaseChain("inet", "theirs", "kind", FORWARD, ACCEPT),
    ]
    assert dropping_chains(chains, "sampan0-pods") == ["inet firewalld filter_FORWARD"]


@pytest.mark.parametrize(
    "chain",
    [
        BaseChain("ip", "filter", "FORWARD", FORWARD, DROP),
        BaseChain("ip", "sampan0-pods", "x", FORWARD, DROP),
    ],
)
def test_ours_and_what_iptables_made_are_left_out(chain):
    """Rules of ours let pods through there."""
    assert dropping_chains([chain], "sampan0-pods") == []
