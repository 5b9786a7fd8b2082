"""A NetworkPolicy as its enforcement needs it.

Job: read the object once: whom it selects, which directions it isolates, what each rule lets
    through. Pure.
Invariant: the id is of name and content: a policy that changes is another one, so old and new rules
    never mix.
Invariant: what is left of a policy (`bounded`, `closed`) isolates whom it isolated: it may let less
    through, never more.
"""

import hashlib
from collections.abc import Mapping, Sequence

import orjson

from sampan.api.objects import Obj, key_of, namespace_of
from sampan.api.rules.selectors import LabelSelector, from_object
from sampan.core.fast_dataclass import dataclass, replace

INGRESS, EGRESS = "ingress", "egress"
ID_LENGTH = 12
# Of a namespace's policies: each takes the kernel as long as there are sets.
MOST_SETS = 2_000
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ports:
    """Of one protocol: ranges, or none for every port."""

    protocol: str
    ranges: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NamedPort:
    protocol: str
    name: str


@dataclass(frozen=True, slots=True)
class Block:
    """An ipBlock."""

    cidr: str
    excepts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodPeer:
    """`namespaces` None: those of the policy's own namespace only."""

    pods: LabelSelector
    namespaces: LabelSelector | None


@dataclass(frozen=True, slots=True)
class Rule:
    """Any peer where there are neither blocks nor pods; any port where there are no ports."""

    any_peer: bool
    any_port: bool
    blocks: tuple[Block, ...] = ()
    pods: tuple[PodPeer, ...] = ()
    ports: tuple[Ports, ...] = ()
    named: tuple[NamedPort, ...] = ()

    def lets_port(self, protocol: str, port: int) -> bool:
        """By number; what a name means is the receiver's affair."""
        return self.any_port or any(
            each.protocol == protocol
            and (not each.ranges or any(first <= port <= last for first, last in each.ranges))
            for each in self.ports
        )


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    id: str
    key: str
    namespace: str
    selector: LabelSelector
    ingress: tuple[Rule, ...] | None  # None: this direction is not isolated by it
    egress: tuple[Rule, ...] | None

    def rules(self, direction: str) -> tuple[Rule, ...] | None:
        return self.ingress if direction == INGRESS else self.egress

    def selects(self, namespace: str, labels: Labels) -> bool:
        return namespace == self.namespace and self.selector.matches(labels)


def peers_need_set(rule: Rule) -> bool:
    return bool(rule.pods)


def ports_need_set(direction: str, rule: Rule) -> bool:
    return bool(rule.named or (direction == EGRESS and rule.pods))


def sets_needed(policy: CompiledPolicy) -> int:
    return sum(
        peers_need_set(rule) + ports_need_set(direction, rule)
        for direction in (INGRESS, EGRESS)
        for rule in policy.rules(direction) or ()
    )


def bounded(policies: Sequence[CompiledPolicy]) -> list[CompiledPolicy]:
    """The same, in the same order; where those of a namespace need more than MOST_SETS, the rules
    behind let nothing through."""
    left: dict[str, int] = {}
    found = []
    for policy in policies:
        room, needed = left.setdefault(policy.namespace, MOST_SETS), sets_needed(policy)
        left[policy.namespace] = max(room - needed, 0)
        found.append(policy if needed <= room else _cut(policy, room))
    return found


def closed(policy: CompiledPolicy) -> CompiledPolicy:
    """It isolates, and lets nothing through."""
    return _with_rules(
        policy,
        None if policy.ingress is None else (),
        None if policy.egress is None else (),
    )


def _cut(policy: CompiledPolicy, room: int) -> CompiledPolicy:
    kept: dict[str, tuple[Rule, ...] | None] = {}
    for direction in (INGRESS, EGRESS):
        rules = policy.rules(direction)
        mine: list[Rule] = []
        for rule in rules or ():
            needed = peers_need_set(rule) + ports_need_set(direction, rule)
            if needed <= room:
                room -= needed
                mine.append(rule)
        kept[direction] = None if rules is None else tuple(mine)
    return _with_rules(policy, kept[INGRESS], kept[EGRESS])


def _with_rules(
    policy: CompiledPolicy, ingress: tuple[Rule, ...] | None, egress: tuple[Rule, ...] | None
) -> CompiledPolicy:
    """Another one, by its id too."""
    content = f"{policy.id} {len(ingress or ())} {len(egress or ())}"
    made = hashlib.sha256(content.encode()).hexdigest()[:ID_LENGTH]
    return replace(policy, id=made, ingress=ingress, egress=egress)


def compile_policy(policy: Obj) -> CompiledPolicy:
    spec = policy.get("spec") or {}
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    content = orjson.dumps([key_of(policy), spec], option=orjson.OPT_SORT_KEYS)
    return CompiledPolicy(
        id=hashlib.sha256(content).hexdigest()[:ID_LENGTH],
        key=key_of(policy),
        namespace=namespace_of(policy),
        selector=from_object(spec.get("podSelector") or {}),
        ingress=_rules(spec.get("ingress"), "from") if "Ingress" in types else None,
        egress=_rules(spec.get("egress"), "to") if "Egress" in types else None,
    )


def _rules(rules: list[Obj] | None, peers: str) -> tuple[Rule, ...]:
    return tuple(_rule(rule.get(peers) or [], rule.get("ports") or []) for rule in rules or ())


def _rule(peers: list[Obj], ports: list[Obj]) -> Rule:
    blocks = tuple(_block(peer["ipBlock"]) for peer in peers if peer.get("ipBlock"))
    pods = tuple(_pod_peer(peer) for peer in peers if not peer.get("ipBlock"))
    numbered: dict[str, list[tuple[int, int]] | None] = {}
    named: list[NamedPort] = []
    for port in ports:
        protocol, number = port.get("protocol") or "TCP", port.get("port")
        if isinstance(number, str):
            named.append(NamedPort(protocol, number))
        elif number is None:
            numbered[protocol] = None
        elif (ranges := numbered.setdefault(protocol, [])) is not None:
            ranges.append((number, port.get("endPort") or number))
    numbers = [Ports(protocol, _merge(ranges or [])) for protocol, ranges in numbered.items()]
    return Rule(not peers, not ports, blocks, pods, tuple(numbers), tuple(named))


def _merge(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted, and none within another: nftables refuses ranges that overlap."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def _block(block: Obj) -> Block:
    return Block(block["cidr"], tuple(block.get("except") or ()))


def _pod_peer(peer: Obj) -> PodPeer:
    namespaces = peer.get("namespaceSelector")
    return PodPeer(
        from_object(peer.get("podSelector") or {}),
        None if namespaces is None else from_object(namespaces),
    )
