"""NodeAffinity: nodeSelector, and one of the required terms."""

from dataclasses import replace

import numpy as np

from sampan.api.rules.node_selectors import NAME_FIELD, Term
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.node_masks import all_hold, any_term
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends

NOT_MATCHED = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.selector and pod.required is None:
        return None
    allowed = all_hold(pod.selector, nodes)
    if pod.required is not None and allowed.any():
        allowed &= any_term(pod.required, nodes)
    return allowed


def named(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    """The nodes that every required term names, as those of daemons do."""
    if pod.required is None:
        return None
    found: BoolArray = np.zeros(len(nodes), np.bool_)
    for term in pod.required:
        names = _names_in(term)
        if names is None:
            return None
        for name in names:
            at = nodes.at.get(name)
            if at is not None:
                found[at] = True
    return found


def beforehand(pod: PodShape, nodes: Snapshot) -> str | None:
    """Terms of which none names a node that it allows."""
    if not pod.required:
        return None
    every = [_names_in(term) for term in pod.required]
    return None if any(names is None or names for names in every) else CONFLICT


def _names_in(term: Term) -> frozenset[str] | None:
    """None: the term names no node."""
    listed = [
        frozenset(item.values)
        for item in term.fields
        if item.key == NAME_FIELD and item.operator == "In"
    ]
    return frozenset.intersection(*listed) if listed else None


def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
    return {NOT_MATCHED: int(refused.sum())}


def with_added(added: tuple[Term, ...]) -> Filter:
    """The rule of a profile that demands something of the nodes of every pod
    (NodeAffinityArgs.addedAffinity)."""

    def both(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
        own, enforced = mask(pod, nodes), any_term(added, nodes)
        return enforced if own is None else own & enforced

    def why(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
        """As upstream, the profile's terms are looked at first."""
        enforced = any_term(added, nodes)
        found = {
            NOT_ENFORCED: int((refused & ~enforced).sum()),
            NOT_MATCHED: int((refused & enforced).sum()),
        }
        return {text: count for text, count in found.items() if count}

    return replace(NODE_AFFINITY, mask=both, reasons=why)


NODE_AFFINITY = Filter(
    "NodeAffinity", mask, reasons, never_resolvable, Depends.NODES,
    beforehand=beforehand, named=named,
)  # fmt: skip
