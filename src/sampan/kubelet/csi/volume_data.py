"""vol_data.json: what the next kubelet has to know of a volume that this one had mounted. Blocking.

Job: write it before a driver is called, find all of them after a restart, take them away.
Invariant: whatever a driver may have mounted has its file: it is written before the call, and goes
    after the driver has taken everything back.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping

from sampan.core.fast_dataclass import dataclass
from sampan.core.mounts import is_mounted
from sampan.kubelet.csi.csi_volume import EPHEMERAL, PERSISTENT, CsiVolume
from sampan.kubelet.csi.volume_paths import DATA_FILE, ESCAPED, CsiPaths

_MODE = 0o750


@dataclass(frozen=True, slots=True)
class Known:
    """What is left of a volume: enough to take it back from the driver."""

    volume: CsiVolume
    selinux_label: str = ""  # that it was mounted with
    attachable: bool = False  # the attach-detach controller must not detach it meanwhile


def save(directory: str, data: Mapping[str, str]) -> None:
    """Not synced: with the machine's power the mounts go as well. Raises OSError."""
    os.makedirs(directory, _MODE, exist_ok=True)
    path = f"{directory}/{DATA_FILE}"
    with open(f"{path}.new", "w") as file:
        json.dump(data, file)
        file.write("\n")
    os.rename(f"{path}.new", path)


def stage_data(volume: CsiVolume, *, attachable: bool, selinux: str = "") -> dict[str, str]:
    data = {"volumeHandle": volume.handle, "driverName": volume.driver, "specVolID": volume.name}
    if attachable:
        data["attachable"] = "true"
    if selinux:
        data["seLinuxMountContext"] = selinux
    return data


def publish_data(
    volume: CsiVolume, node_name: str, attachment: str, selinux: str = ""
) -> dict[str, str]:
    data = {
        "specVolID": volume.name,
        "volumeHandle": volume.handle,
        "driverName": volume.driver,
        "nodeName": node_name,
        "volumeLifecycleMode": volume.mode,
        "attachmentID": attachment,
    }
    if selinux:
        data["seLinuxMountContext"] = selinux
    return data


def load(directory: str, *, block: bool = False) -> Known | None:
    """None: there is none, or it cannot be read."""
    try:
        with open(f"{directory}/{DATA_FILE}") as file:
            data = json.load(file)
        volume = CsiVolume(
            name=data.get("specVolID") or os.path.basename(directory),
            driver=data["driverName"],
            handle=data["volumeHandle"],
            mode=EPHEMERAL if data.get("volumeLifecycleMode") == EPHEMERAL else PERSISTENT,
            block=block,
        )
        label = data.get("seLinuxMountContext") or ""
        return Known(volume, label, data.get("attachable") == "true")
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def published(paths: CsiPaths, uid: str) -> list[CsiVolume]:
    """What a pod has, or may have, from drivers."""
    pod = f"{paths.root}/pods/{uid}"
    found = [load(path) for path in _folders(f"{pod}/volumes/{ESCAPED}")]
    found += [load(path, block=True) for path in _folders(f"{pod}/volumeDevices/{ESCAPED}")]
    return [known.volume for known in found if known is not None]


def staged(paths: CsiPaths) -> Iterator[Known]:
    """What is, or may be, staged on the node."""
    for driver in _folders(paths.plugin):
        if os.path.basename(driver) == "volumeDevices":
            found = [load(f"{path}/data", block=True) for path in _folders(driver)]
        else:
            found = [load(path) for path in _folders(driver)]
        yield from (known for known in found if known is not None)


def remove_published(paths: CsiPaths, volume: CsiVolume, uid: str) -> None:
    """The driver has taken it back. Raises OSError where something is still mounted."""
    target, directory = paths.target(volume, uid), paths.publish_data(volume, uid)
    if volume.block:
        _unlink(paths.device_link(volume, uid))
        _unlink(target)
        _rmdir(os.path.dirname(target))
    elif not is_mounted(target):
        _rmdir(target, missing_only=True)
    _unlink(f"{directory}/{DATA_FILE}")
    _rmdir(directory, missing_only=True)


def remove_staged(paths: CsiPaths, volume: CsiVolume) -> None:
    """Likewise."""
    staging, directory = paths.staging(volume), paths.stage_data(volume)
    if volume.block:
        _rmdir(staging)
        _rmdir(f"{paths.plugin}/volumeDevices/publish/{volume.name}")
    elif not is_mounted(staging):
        _rmdir(staging, missing_only=True)
    _unlink(f"{directory}/{DATA_FILE}")
    _rmdir(directory, missing_only=True)
    if volume.block:
        _rmdir(os.path.dirname(directory))


def _rmdir(path: str, *, missing_only: bool = False) -> None:
    """`missing_only`: that it cannot be removed is an error."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError:
        if missing_only:
            raise


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _folders(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
