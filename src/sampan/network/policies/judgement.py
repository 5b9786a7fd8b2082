"""Verdict of NetworkPolicies on one connection, and which of them decide.

Job: policies, both pods, protocol and port → a judgement for people. Pure; the kernel's rules come
    from ruleset.py, and tests hold the two together.
"""

from collections.abc import Mapping, Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.network.policies.compiled import EGRESS, INGRESS, CompiledPolicy, Labels, Rule
from sampan.network.policies.elements_of_pod import PodView, is_peer, named_numbers, selecting
from sampan.network.policies.ruleset import block_holds


@dataclass(frozen=True, slots=True)
class Connection:
    source: PodView
    target: PodView
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of one direction. No policy at all isolates: allowed."""

    direction: str
    isolating: tuple[str, ...]  # the policies that select the pod
    allowing: tuple[str, ...]  # those of them that let it through

    @property
    def allowed(self) -> bool:
        return not self.isolating or bool(self.allowing)


def judgements(
    connection: Connection, policies: Sequence[CompiledPolicy], namespaces: Mapping[str, Labels]
) -> list[Judgement]:
    """The sender's first. A connection is let through if both allow it."""
    found = []
    for direction in (EGRESS, INGRESS):
        own = connection.source if direction == EGRESS else connection.target
        mine = selecting(own, policies, direction)
        allowing = [
            policy.key
            for policy in mine
            if any(
                _lets_through(connection, policy, rule, direction, namespaces)
                for rule in policy.rules(direction) or ()
            )
        ]
        isolating = tuple(policy.key for policy in mine)
        found.append(Judgement(direction, isolating, tuple(allowing)))
    return found


def _lets_through(
    connection: Connection,
    policy: CompiledPolicy,
    rule: Rule,
    direction: str,
    namespaces: Mapping[str, Labels],
) -> bool:
    peer = connection.target if direction == EGRESS else connection.source
    by_block = any(block_holds(block, address) for block in rule.blocks for address in
                   peer.addresses)  # fmt: skip
    # Without a namespace it is no pod, but an address somewhere.
    by_pod = bool(peer.namespace) and any(
        is_peer(peer, each, policy, namespaces) for each in rule.pods
    )
    if not (rule.any_peer or by_block or by_pod):
        return False
    if rule.lets_port(connection.protocol, connection.port):
        return True
    # A name is about a pod; a block of addresses has no names.
    if direction == EGRESS and not (rule.any_peer or by_pod):
        return False
    wanted = (connection.protocol, connection.port)
    return any(wanted in named_numbers(connection.target, each) for each in rule.named)
