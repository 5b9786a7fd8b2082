"""Firewalls of others that drop what they do not know: no rule of ours can let it through.

Job: find the chains that what pods send and get has to pass. What iptables made is left out:
    there we set rules of our own (network/iptables.py).
"""

from collections.abc import Iterable

from sampan.network.nftables.queries import BaseChain, base_chains

_FORWARD_HOOK, _DROP = 2, 0
_OF_IPTABLES = "FORWARD"


def dropping_chains(chains: Iterable[BaseChain], own_table: str) -> list[str]:
    """`inet filter forward`. Pure."""
    return sorted(
        f"{chain.family} {chain.table} {chain.name}"
        for chain in chains
        if (chain.hook, chain.policy) == (_FORWARD_HOOK, _DROP)
        and chain.table != own_table
        and chain.name != _OF_IPTABLES
    )


def find_dropping_chains(own_table: str) -> list[str]:
    """None where the kernel does not say."""
    try:
        return dropping_chains(base_chains(), own_table)
    except OSError:
        return []
