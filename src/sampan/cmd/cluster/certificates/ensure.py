"""The certificates that a cluster needs, there and good.

Job: have those made that are missing, old or for other names; look at none that is known as good.
"""

from collections.abc import Sequence
from pathlib import Path

from sampan.cmd.cluster.certificates import known_good
from sampan.cmd.cluster.pki import Leaf, Pki
from sampan.core.clock import Clock


def ensure(root: Path, wanted: Sequence[Leaf], clock: Clock) -> int:
    """Make what is missing, outdated or for other names; returns how many were made."""
    root.mkdir(mode=0o700, exist_ok=True)
    if known_good.is_noted(root, wanted, clock.now()):
        return 0
    # Signing is cryptography, which takes longer to import than the rest of a start.
    from sampan.cmd.cluster.certificates import signing

    pki = Pki(root)
    made = signing.put_right(pki, wanted, clock.now())
    known_good.note(root, wanted, signing.renewed_at(pki, wanted))
    return made
