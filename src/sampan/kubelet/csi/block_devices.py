"""Block devices of pods: where a container finds them. Blocking.

Job: make and take away the link that leads from the pod's directory to the device.
"""

import os
import stat

from sampan.kubelet.contracts.volumes_hook import VolumeFailure

_MODE = 0o750


def link_device(device: str, link: str) -> str:
    """The link. Raises VolumeFailure where there is no block device, OSError."""
    if not stat.S_ISBLK(os.stat(device).st_mode):
        raise VolumeFailure(f"{device} is not a block device")
    os.makedirs(os.path.dirname(link), _MODE, exist_ok=True)
    if os.path.islink(link):
        if os.readlink(link) == device:
            return link
        os.unlink(link)
    os.symlink(device, link)
    return link
