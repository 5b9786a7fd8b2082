"""Where a CSI volume is on the node, as upstream's kubelet lays it out. Pure.

Job: paths below the kubelet's root, and the same paths as a driver sees them.
"""

import hashlib

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.paths import WELL_KNOWN_ROOT, pod_directory
from sampan.kubelet.csi.csi_volume import CsiVolume

ESCAPED = "kubernetes.io~csi"
DATA_FILE = "vol_data.json"
GLOBAL_MOUNT = "globalmount"


@dataclass(frozen=True, slots=True)
class CsiPaths:
    root: str  # the kubelet's

    @property
    def plugin(self) -> str:
        return f"{self.root}/plugins/kubernetes.io/csi"

    def staging(self, volume: CsiVolume) -> str:
        """What NodeStageVolume is given."""
        if volume.block:
            return f"{self.plugin}/volumeDevices/staging/{volume.name}"
        return f"{self.stage_data(volume)}/{GLOBAL_MOUNT}"

    def stage_data(self, volume: CsiVolume) -> str:
        """The directory whose file says that the volume is, or may be, staged."""
        if volume.block:
            return f"{self.plugin}/volumeDevices/{volume.name}/data"
        hashed = hashlib.sha256(volume.handle.encode()).hexdigest()
        return f"{self.plugin}/{volume.driver}/{hashed}"

    def target(self, volume: CsiVolume, uid: str) -> str:
        """What NodePublishVolume is given."""
        if volume.block:
            return f"{self.plugin}/volumeDevices/publish/{volume.name}/{uid}"
        return f"{self.publish_data(volume, uid)}/mount"

    def publish_data(self, volume: CsiVolume, uid: str) -> str:
        """The directory whose file says that the pod has, or may have, the volume."""
        if volume.block:
            return f"{pod_directory(uid, self.root)}/volumeDevices/{ESCAPED}/.{volume.name}"
        return f"{pod_directory(uid, self.root)}/volumes/{ESCAPED}/{volume.name}"

    def device_link(self, volume: CsiVolume, uid: str) -> str:
        """Where the pod's block device is found."""
        return f"{pod_directory(uid, self.root)}/volumeDevices/{ESCAPED}/{volume.name}"


def seen_by_driver(path: str, root: str, endpoint: str) -> str:
    """Whoever listens below the well-known root sees the kubelet's directory there."""
    if not endpoint.startswith(f"{WELL_KNOWN_ROOT}/") or not path.startswith(f"{root}/"):
        return path
    return WELL_KNOWN_ROOT + path[len(root) :]
