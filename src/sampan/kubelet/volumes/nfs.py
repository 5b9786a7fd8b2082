"""NFS volumes: mounted by the machine's own helper. Blocking.

Job: one export at one place, with what the volume's options say; a clear word where that fails.
Invariant: a server that does not answer holds one pod up, and for so long only.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence

from sampan.kubelet.contracts.volumes_hook import VolumeFailure

HELPER, PLACES = "mount.nfs", "/sbin:/usr/sbin:/bin:/usr/bin"
MOUNT_SECONDS = 120.0


def mount_nfs(source: str, target: str, options: Sequence[str]) -> None:
    """Raises VolumeFailure."""
    if os.path.ismount(target):
        return
    if shutil.which(HELPER, path=PLACES) is None:
        raise VolumeFailure(
            f"mount failed: {HELPER} is not installed on this node (nfs-common, nfs-utils): it is "
            "what mounts NFS"
        )
    arguments = ["-t", "nfs", *(["-o", ",".join(options)] if options else []), source, target]
    try:
        done = subprocess.run(
            ["mount", *arguments], capture_output=True, text=True, timeout=MOUNT_SECONDS,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VolumeFailure(f"mount failed: {error}") from error
    if done.returncode:
        raise VolumeFailure(
            f"mount failed: exit status {done.returncode}\nMounting command: mount\n"
            f"Mounting arguments: {' '.join(arguments)}\nOutput: {done.stdout}{done.stderr}"
        )
