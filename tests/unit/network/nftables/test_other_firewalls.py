import json

import pytest

from sampan.network.nftables.other_firewalls import dropping_chains


def chain(family, table, name, hook="forward", policy="drop"):
    return {"chain": {"family": family, "table": table, "name": name, "hook": hook,
                      "policy": policy}}  # fmt: skip


def test_only_chains_that_drop_what_is_forwarded_are_named():
    listed = [
        {"metainfo": {"version": "1.0.6"}},
        chain("inet", "firewalld", "filter_FORWARD"),
        chain("inet", "theirs", "in", hook="input"),
        chain("inet", "theirs", "kind", policy="accept"),
        {"chain": {"family": "inet", "table": "theirs", "name": "jumped-to"}},
    ]
    found = dropping_chains(json.dumps({"nftables": listed}), "sampan0-pods")
    assert found == ["inet firewalld filter_FORWARD"]


def test_ours_and_what_iptables_made_are_left_out():
    """Rules of ours let pods through there."""
    listed = [chain("ip", "filter", "FORWARD"), chain("ip", "sampan0-pods", "x")]
    assert dropping_chains(json.dumps({"nftables": listed}), "sampan0-pods") == []


@pytest.mark.parametrize("listed", ["", "{}", '{"nftables": []}'])
def test_nothing_said_is_nothing_found(listed):
    assert dropping_chains(listed, "t") == []
