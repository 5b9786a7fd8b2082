"""The kubelet's directory as a shared mount: what a driver mounts in its pod is seen on the node.

Job: make it one, where it is not. Blocking.
Invariant: nothing that is mounted below it already is hidden.
"""

import os

from sampan.core.log import get_logger
from sampan.core.mounts import mounts_below, propagates, share

log = get_logger(__name__)


def share_root(root_dir: str) -> None:
    """Raises OSError."""
    os.makedirs(root_dir, exist_ok=True)
    real = os.path.realpath(root_dir)
    if propagates(real):
        return
    if mounts_below(real):
        # Volumes of pods that an agent without plugins left running: a mount over them would hide
        # them from who has to unmount them.
        log.warning("kubelet's directory is shared after the next start without pods", path=real)
        return
    share(real)
