"""CDI devices for a runtime that does not know them: told in CRI's own words. Blocking.

Job: what the machine's CDI specifications say of a container's devices → its spec.
Invariant: what CRI has no word for is a RuntimeFailure.
"""

from collections.abc import Mapping
from typing import Any

from sampan.core.fast_dataclass import replace
from sampan.kubelet.contracts.runtime import ContainerSpec, Device, Mount, RuntimeFailure
from sampan.runtime import cdi

_PROPAGATION = {"rslave": "host_to_container", "slave": "host_to_container",
                "rshared": "bidirectional", "shared": "bidirectional"}  # fmt: skip


def with_cdi_devices(container: ContainerSpec) -> ContainerSpec:
    """Raises RuntimeFailure."""
    try:
        edits = cdi.edits_of(container.cdi_devices, cdi.read())
    except cdi.CdiFailure as error:
        raise RuntimeFailure(f"CDI device injection failed: {error}") from error
    env, mounts, devices = dict(container.env), list(container.mounts), list(container.devices)
    groups = list(container.security.supplemental_groups)
    for edit in edits:
        for line in edit.get("env") or ():
            name, _, value = str(line).partition("=")
            env[name] = value
        mounts += [_mount(item) for item in edit.get("mounts") or ()]
        devices += [_device(item) for item in edit.get("deviceNodes") or ()]
        groups += [group for group in edit.get("additionalGids") or () if group not in groups]
        for name in ("hooks", "intelRdt", "netDevices"):
            if edit.get(name):
                raise RuntimeFailure(
                    f"CDI device injection failed: {name} need a runtime that knows CDI "
                    "(containerd from 1.7 on with enable_cdi, CRI-O)"
                )
    return replace(
        container,
        env=tuple(env.items()),
        mounts=tuple(mounts),
        devices=tuple(devices),
        cdi_devices=(),
        security=replace(container.security, supplemental_groups=tuple(groups)),
    )


def _mount(item: Mapping[str, Any]) -> Mount:
    made = cdi.oci_mount(item)
    if made["type"] != "bind":
        raise RuntimeFailure(
            f"CDI device injection failed: a mount of type {made['type']} needs a runtime that "
            "knows CDI"
        )
    shared = next((name for name in made["options"] if name in _PROPAGATION), "")
    return Mount(
        made["destination"], made["source"], "ro" in made["options"],
        propagation=_PROPAGATION.get(shared, "private"),
    )  # fmt: skip


def _device(item: Mapping[str, Any]) -> Device:
    path = item["path"]
    return Device(path, item.get("hostPath") or path, item.get("permissions") or "mrw")
