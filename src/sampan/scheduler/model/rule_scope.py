"""What the result of a rule depends on, so that it is computed again only where it may differ.

Job: three words for it.
Invariant: a rule that claims too little here makes a batch decide otherwise than one by one; the
    property test of batch.py is what keeps the claims true.
"""

from enum import Enum


class Depends(Enum):
    NODES = "on the nodes: no pod that comes or goes changes anything"
    PLACE = "on a node and the pods on it: a pod that comes or goes changes its node's entry"
    EVERYTHING = "on pods anywhere"
