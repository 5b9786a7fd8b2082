"""The rules behind NetworkPolicies, as nftables text.

Job: the static chains, and for each policy a chain per direction with the sets that it asks. Pure.
Invariant: a rule names no pod: which pods a set holds is a matter of elements.
Invariant: every packet of a connection's own direction is judged, so a policy that changes holds
    for connections that exist; answers are let through with their question.

A packet's way: `policy-egress` leads from the sender's address to a chain for exactly those
policies that select it, which asks each and then drops; `policy-ingress` likewise for the receiver.
Pods that no policy selects are in neither map. What a pod sends to its own node is asked about in
`policy-egress-node`, where are those that a namespace wants to be asked about (COVER_NODE).
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Sequence

from sampan.network.nftables.elements import Field, SetShape
from sampan.network.policies.compiled import (
    EGRESS,
    INGRESS,
    Block,
    CompiledPolicy,
    Labels,
    Rule,
)

PREFIX = "policy-"  # of every chain and set of policies
MAPS = {INGRESS: "policy-ingress", EGRESS: "policy-egress"}
TO_NODE = "policy-egress-node"
VERDICTS = frozenset((*MAPS.values(), TO_NODE))
# A namespace's label: egress policies hold for what its pods send to their own node, too.
COVER_NODE = "policies.sampan.dev/cover-node"
# Pods on one bridge find each other by packets that are passed on like all others.
_ALWAYS = {
    "ip": (),
    "ip6": ("icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, mld-listener-report }",),
}
_PEER = {INGRESS: "saddr", EGRESS: "daddr"}


def address_field(family: str) -> Field:
    return Field.IPV4 if family == "ip" else Field.IPV6


def skeleton(family: str, table: str) -> str:
    """Once; the table is there, and so is the set `hairpin`."""
    address = "ipv4_addr" if family == "ip" else "ipv6_addr"
    where = f"{family} {table}"
    lines = []
    for direction, own, way, priority in (
        (EGRESS, "saddr", "forward", "- 6"),
        (INGRESS, "daddr", "forward", "- 5"),
        (EGRESS, "saddr", "input", "- 6"),
    ):
        to_node = way == "input"
        map_name = TO_NODE if to_node else MAPS[direction]
        chain = f"hook-{direction}-node" if to_node else f"hook-{direction}"
        hook = f"type filter hook {way} priority filter {priority}; policy accept;"
        lines += [
            f"add map {where} {map_name} {{ type {address} : verdict; }}",
            f"add chain {where} {chain} {{ {hook} }}",
            f"flush chain {where} {chain}",
            f"add rule {where} {chain} ct direction reply accept",
            *(f"add rule {where} {chain} {each} accept" for each in _ALWAYS[family]),
            # Nobody can keep a pod from itself.
            f"add rule {where} {chain} {family} saddr . {family} daddr @hairpin accept",
            f"add rule {where} {chain} {family} {own} vmap @{map_name}",
        ]
    return "\n".join(lines) + "\n"


def covers_node(namespace: Labels) -> bool:
    return namespace.get(COVER_NODE) == "true"


def peers_name(policy: CompiledPolicy, direction: str, number: int) -> str:
    """The set of the pods that the rule's peers are."""
    return f"{PREFIX}{policy.id}-{direction}-{number}"


def named_name(policy: CompiledPolicy, direction: str, number: int) -> str:
    """The set of address, protocol and port for the rule's named ports: of the pods that receive
    (and are its peers, for egress). And of the node's name server, where it is a peer."""
    return f"{PREFIX}{policy.id}-{direction}-{number}-named"


def has_ports_of_peers(direction: str, rule: Rule) -> bool:
    return bool(rule.named or (direction == EGRESS and rule.pods))


def shape_of(family: str, name: str) -> SetShape:
    address = address_field(family)
    if name in VERDICTS:
        return SetShape(name, (address,), verdicts=True)
    if name.endswith("-named"):
        return SetShape(name, (address, Field.PROTOCOL, Field.PORT))
    return SetShape(name, (address,))


def chain_of(policy: CompiledPolicy, direction: str) -> str:
    return f"{PREFIX}{policy.id}-{direction}"


def combination(policies: Sequence[CompiledPolicy], direction: str) -> str:
    """The chain for pods that exactly these policies select."""
    ids = ",".join(sorted(policy.id for policy in policies))
    return f"{PREFIX}all-{hashlib.sha256(ids.encode()).hexdigest()[:12]}-{direction}"


def combination_script(
    family: str, table: str, policies: Sequence[CompiledPolicy], direction: str
) -> str:
    where, chain = f"{family} {table}", combination(policies, direction)
    jumps = sorted(chain_of(policy, direction) for policy in policies)
    return _chain(where, chain, [*(f"jump {each}" for each in jumps), "drop"])


def sets_of(family: str, policy: CompiledPolicy) -> list[SetShape]:
    found = []
    for direction in (INGRESS, EGRESS):
        for number, rule in enumerate(policy.rules(direction) or ()):
            if rule.pods:
                found.append(shape_of(family, peers_name(policy, direction, number)))
            if has_ports_of_peers(direction, rule):
                found.append(shape_of(family, named_name(policy, direction, number)))
    return found


def policy_script(family: str, table: str, policy: CompiledPolicy) -> str:
    where = f"{family} {table}"
    address = "ipv4_addr" if family == "ip" else "ipv6_addr"
    lines = []
    for shape in sets_of(family, policy):
        more = " . inet_proto . inet_service" if len(shape.key) == 3 else ""
        lines.append(f"add set {where} {shape.name} {{ type {address}{more}; }}\n")
    for direction in (INGRESS, EGRESS):
        rules = policy.rules(direction)
        if rules is not None:
            texts = [
                f"{match} accept".strip()
                for number, rule in enumerate(rules)
                for match in matches(family, policy, direction, number, rule)
            ]
            lines.append(_chain(where, chain_of(policy, direction), texts))
    return "".join(lines)


def matches(
    family: str, policy: CompiledPolicy, direction: str, number: int, rule: Rule
) -> list[str]:
    """What a packet may look like for one rule to let it through."""
    peer = f"{family} {_PEER[direction]}"
    addresses = [""] if rule.any_peer else []
    addresses += [_block(peer, block) for block in rule.blocks if _fits(family, block)]
    if rule.pods:
        addresses.append(f"{peer} @{peers_name(policy, direction, number)}")
    ports = [""] if rule.any_port else []
    ports += [_ports(each.protocol, each.ranges) for each in rule.ports]
    found = [f"{address} {port}".strip() for address in addresses for port in ports]
    if has_ports_of_peers(direction, rule):
        target = f"{family} daddr . meta l4proto . th dport"
        transport = "meta l4proto { tcp, udp, sctp }"
        named = f"{transport} {target} @{named_name(policy, direction, number)}"
        # Egress: the set holds the peers' own ports, and so says who they are. A block has none.
        whose = addresses if direction == INGRESS else [""]
        found += [f"{address} {named}".strip() for address in whose]
    return found


def removal_script(family: str, table: str, chains: Iterable[str], sets: Iterable[str]) -> str:
    """Combinations first, as they lead to the others."""
    where = f"{family} {table}"
    ordered = sorted(chains, key=lambda chain: (not chain.startswith(f"{PREFIX}all-"), chain))
    lines = [f"flush chain {where} {chain}" for chain in ordered]
    lines += [f"delete chain {where} {chain}" for chain in ordered]
    lines += [f"delete set {where} {name}" for name in sorted(sets)]
    return "\n".join(lines) + "\n" if lines else ""


def _chain(where: str, name: str, rules: Iterable[str]) -> str:
    lines = [f"add chain {where} {name}", f"flush chain {where} {name}"]
    lines += [f"add rule {where} {name} {rule}" for rule in rules]
    return "\n".join(lines) + "\n"


def _block(peer: str, block: Block) -> str:
    match = f"{peer} {block.cidr}"
    if not block.excepts:
        return match
    networks = [ipaddress.ip_network(each, strict=False) for each in block.excepts]
    outside = ipaddress.collapse_addresses(networks)  # type: ignore[type-var]  # of one version
    return f"{match} {peer} != {{ {', '.join(str(each) for each in outside)} }}"


def block_holds(block: Block, address: str) -> bool:
    """Is the address one that an ipBlock is about?"""
    found = ipaddress.ip_address(address)
    return found in ipaddress.ip_network(block.cidr, strict=False) and not any(
        found in ipaddress.ip_network(each, strict=False) for each in block.excepts
    )


def _fits(family: str, block: Block) -> bool:
    return (":" in block.cidr) == (family == "ip6")


def _ports(protocol: str, ranges: Sequence[tuple[int, int]]) -> str:
    text = f"meta l4proto {protocol.lower()}"
    if not ranges:
        return text
    shown = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ranges)
    return f"{text} th dport {{ {shown} }}"
