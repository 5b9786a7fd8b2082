"""What device plugins answered for a container, put together.

Job: ContainerAllocateResponses of all its resources → Grants.
Invariant: of two that say something different of the same thing, the first is heard, and that is
    logged.

Importing this module brings the protocol's messages: only who has devices does.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from sampan.core.log import get_logger
from sampan.kubelet.contracts.paths import own_path
from sampan.kubelet.contracts.resources_hook import Grants
from sampan.kubelet.contracts.runtime import Device, Mount
from sampan.plugins.device_plugin import messages

T = TypeVar("T")
log = get_logger(__name__)


def grants_of(answers: Iterable[bytes], root_dir: str) -> Grants:
    env: dict[str, str] = {}
    notes: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    devices: dict[str, Device] = {}
    cdi: dict[str, None] = {}
    for wire in answers:
        answer = messages.ContainerAllocateResponse.FromString(wire)
        _add("environment variable", env, dict(answer.envs))
        _add("annotation", notes, dict(answer.annotations))
        _add(
            "mount",
            mounts,
            {
                item.container_path: Mount(
                    item.container_path, own_path(item.host_path, root_dir), item.read_only
                )
                for item in answer.mounts
            },
        )
        _add(
            "device",
            devices,
            {
                item.container_path: Device(item.container_path, item.host_path, item.permissions)
                for item in answer.devices
            },
        )
        cdi |= dict.fromkeys(item.name for item in answer.cdi_devices)
    return Grants(
        tuple(env.items()), tuple(mounts.values()), tuple(devices.values()), notes, tuple(cdi)
    )


def _add(what: str, found: dict[str, T], more: Mapping[str, T]) -> None:
    for key, value in more.items():
        if found.setdefault(key, value) != value:
            log.warning("device plugins gave conflicting answers", what=what, of=key)
