"""NodeAffinity: nodeSelector, and one of the required terms."""

import numpy as np

from sampan.api.rules.node_selectors import Term
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.node_masks import any_term, label_mask
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends

NOT_MATCHED = "node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.selector and pod.required is None:
        return None
    allowed: BoolArray = np.ones(len(nodes), np.bool_)
    for requirement in pod.selector:
        allowed &= label_mask(requirement, nodes)
    if pod.required is not None:
        allowed &= any_term(pod.required, nodes)
    return allowed


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

    return Filter("NodeAffinity", both, why, never_resolvable, Depends.NODES)


NODE_AFFINITY = Filter("NodeAffinity", mask, reasons, never_resolvable, Depends.NODES)
