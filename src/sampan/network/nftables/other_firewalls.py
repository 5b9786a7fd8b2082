"""Firewalls of others that drop what they do not know: no rule of ours can let it through.

Job: find the chains that what pods send and get has to pass. What iptables made is left out:
    there we set rules of our own (network/iptables.py).
"""

import json
from collections.abc import Iterator

from sampan.network.nftables import nft

_FORWARD = "forward"


def dropping_chains(listed: str, own_table: str) -> list[str]:
    """Of what `nft -j list chains` said: `inet filter forward`. Pure."""
    return sorted(set(_dropping(listed, own_table)))


def _dropping(listed: str, own_table: str) -> Iterator[str]:
    for entry in json.loads(listed or "{}").get("nftables") or ():
        chain = entry.get("chain") or {}
        if chain.get("hook") != _FORWARD or chain.get("policy") != "drop":
            continue
        if chain["table"] != own_table and chain["name"] != _FORWARD.upper():
            yield f"{chain['family']} {chain['table']} {chain['name']}"


def find_dropping_chains(own_table: str) -> list[str]:
    """None where nft does not say."""
    try:
        return dropping_chains(nft.ask("list chains"), own_table)
    except (nft.NftError, ValueError):
        return []
