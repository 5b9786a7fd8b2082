"""The rules behind NetworkPolicies, as nftables text.

Job: the static chains, and for each policy a chain per direction with the sets that it asks. Pure.
Invariant: a rule names no pod: which pods a set holds is a matter of elements.
Invariant: a policy's text is as long as the policy, and not as its addresses times its ports.
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

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.elements import Field, SetShape
from sampan.network.policies.compiled import (
    EGRESS,
    INGRESS,
    Block,
    CompiledPolicy,
    Labels,
    Rule,
    peers_need_set,
    ports_need_set,
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
MOST_PORTS = 500  # of one set


@dataclass(frozen=True, slots=True)
class Script:
    lines: list[str]
    chains: set[str]  # that it makes


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
) -> list[str]:
    where, chain = f"{family} {table}", combination(policies, direction)
    jumps = sorted(chain_of(policy, direction) for policy in policies)
    return _chain(where, chain, [*(f"jump {each}" for each in jumps), "drop"])


def sets_of(family: str, policy: CompiledPolicy) -> list[SetShape]:
    found = []
    for direction in (INGRESS, EGRESS):
        for number, rule in enumerate(policy.rules(direction) or ()):
            if peers_need_set(rule):
                found.append(shape_of(family, peers_name(policy, direction, number)))
            if ports_need_set(direction, rule):
                found.append(shape_of(family, named_name(policy, direction, number)))
    return found


def policy_script(family: str, table: str, policy: CompiledPolicy) -> Script:
    where = f"{family} {table}"
    address = "ipv4_addr" if family == "ip" else "ipv6_addr"
    lines = []
    chains: set[str] = set()
    for shape in sets_of(family, policy):
        more = " . inet_proto . inet_service" if len(shape.key) == 3 else ""
        lines.append(f"add set {where} {shape.name} {{ type {address}{more}; }}")
    for direction in (INGRESS, EGRESS):
        rules = policy.rules(direction)
        if rules is not None:
            chain = chain_of(policy, direction)
            texts: list[str] = []
            for number, rule in enumerate(rules):
                mine, ports = _rule_texts(family, policy, direction, number, rule)
                texts += mine
                if ports:
                    further = f"{chain}-{number}"
                    lines += _chain(where, further, ports)
                    chains.add(further)
            lines += _chain(where, chain, texts)
            chains.add(chain)
    return Script(lines, chains)


def _rule_texts(
    family: str, policy: CompiledPolicy, direction: str, number: int, rule: Rule
) -> tuple[list[str], list[str]]:
    """What a packet may look like for one rule to let it through, and what is in a chain of its
    own: where there are several addresses and several ports, each is asked about once, and not
    every pair of them."""
    addresses, ports, named = matches(family, policy, direction, number, rule)
    # Egress: the set holds the peers' own ports, and so says who they are. A block has none.
    whose = addresses if direction == INGRESS else [""]
    if len(addresses) <= 1 or len(ports) <= 1:
        found = [_join(address, port, "accept") for address in addresses for port in ports]
        return [
            *found,
            *(_join(address, each, "accept") for each in named for address in whose),
        ], []
    further = f"{chain_of(policy, direction)}-{number}"
    jumps = [_join(address, f"jump {further}") for address in addresses]
    own = [_join(port, "accept") for port in ports]
    return [*jumps, *(_join(address, each, "accept") for each in named for address in whose)], own


def _join(*words: str) -> str:
    return " ".join(filter(None, words))


def matches(
    family: str, policy: CompiledPolicy, direction: str, number: int, rule: Rule
) -> tuple[list[str], list[str], list[str]]:
    """The addresses of a rule's peers, its ports by number, and those by name."""
    peer = f"{family} {_PEER[direction]}"
    addresses = [""] if rule.any_peer else []
    addresses += _blocks(peer, [block for block in rule.blocks if _fits(family, block)])
    if peers_need_set(rule):
        addresses.append(f"{peer} @{peers_name(policy, direction, number)}")
    ports = [""] if rule.any_port else []
    for each in rule.ports:
        ports += _ports(each.protocol, each.ranges)
    if not ports_need_set(direction, rule):
        return addresses, ports, []
    target = f"{family} daddr . meta l4proto . th dport"
    transport = "meta l4proto { tcp, udp, sctp }"
    return addresses, ports, [f"{transport} {target} @{named_name(policy, direction, number)}"]


def removal_script(
    family: str, table: str, chains: Iterable[str], sets: Iterable[str]
) -> list[str]:
    """Combinations first, as they lead to the others."""
    where = f"{family} {table}"
    ordered = sorted(chains, key=lambda chain: (not chain.startswith(f"{PREFIX}all-"), chain))
    lines = [f"flush chain {where} {chain}" for chain in ordered]
    lines += [f"delete chain {where} {chain}" for chain in ordered]
    return lines + [f"delete set {where} {name}" for name in sorted(sets)]


def _chain(where: str, name: str, rules: Iterable[str]) -> list[str]:
    lines = [f"add chain {where} {name}", f"flush chain {where} {name}"]
    return lines + [f"add rule {where} {name} {rule}" for rule in rules]


def _blocks(peer: str, blocks: Sequence[Block]) -> list[str]:
    """Those that are whole are one set: a packet is looked up in it, and not compared with each."""
    whole = [block for block in blocks if not block.excepts]
    found = [_block(peer, block) for block in blocks if block.excepts]
    if len(whole) == 1:
        found.append(_block(peer, whole[0]))
    elif whole:
        found.append(f"{peer} {_set_of(block.cidr for block in whole)}")
    return found


def _set_of(cidrs: Iterable[str]) -> str:
    """None within another: nftables refuses ranges that overlap."""
    networks = [ipaddress.ip_network(each, strict=False) for each in cidrs]
    outside = ipaddress.collapse_addresses(networks)  # type: ignore[type-var]  # of one version
    return f"{{ {', '.join(str(each) for each in outside)} }}"


def _block(peer: str, block: Block) -> str:
    match = f"{peer} {block.cidr}"
    if not block.excepts:
        return match
    return f"{match} {peer} != {_set_of(block.excepts)}"


def block_holds(block: Block, address: str) -> bool:
    """Is the address one that an ipBlock is about?"""
    found = ipaddress.ip_address(address)
    return found in ipaddress.ip_network(block.cidr, strict=False) and not any(
        found in ipaddress.ip_network(each, strict=False) for each in block.excepts
    )


def _fits(family: str, block: Block) -> bool:
    return (":" in block.cidr) == (family == "ip6")


def _ports(protocol: str, ranges: Sequence[tuple[int, int]]) -> list[str]:
    """Of many ports several sets: the kernel looks through all of a set of ports for each that is
    added to it."""
    text = f"meta l4proto {protocol.lower()}"
    if not ranges:
        return [text]
    shown = [f"{first}-{last}" if last > first else f"{first}" for first, last in ranges]
    return [
        f"{text} th dport {{ {', '.join(shown[start : start + MOST_PORTS])} }}"
        for start in range(0, len(shown), MOST_PORTS)
    ]
