"""What a container is made of before the OCI runtime sees it: root file system and config.json.

Job: mount the root, the images and the mapped volumes of one container, and write the document that
    the OCI runtime reads.
Invariant: whatever is made is below the container's directory: who removes that has taken it back.
"""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sampan.core.elf import architecture
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.delegation import offered_controllers
from sampan.kubelet.contracts.runtime import ContainerSpec, Mount, RuntimeFailure, SandboxSpec
from sampan.kubelet.native import oci_spec, seccomp, users
from sampan.kubelet.native.first_process import process_namespace
from sampan.kubelet.native.image_mounts import BundlePlace, ContainerImages, mounts_of
from sampan.kubelet.native.machine import given_devices, this_machine
from sampan.kubelet.native.mapped_mounts import mount_mapped
from sampan.kubelet.native.namespaces import USERS, UTS
from sampan.kubelet.native.records import ContainerRecord, SandboxRecord
from sampan.kubelet.native.root_filesystem import VOLUMES, mount_root, mount_root_of_users
from sampan.runtime import cdi
from sampan.runtime.programs import Programs
from sampan.runtime.seccomp_filter import SeccompFilters


@dataclass(frozen=True, slots=True)
class SandboxPlace:
    """The sandbox that a container joins, and the directory that its namespaces are pinned in."""

    record: SandboxRecord
    directory: Path
    spec: SandboxSpec


class Bundles:
    def __init__(self, programs: Programs, seccomp_directory: Path) -> None:
        self._is_crun = programs.name == "crun"
        self._filters = SeccompFilters(seccomp_directory)
        self._machine = this_machine()
        self._architecture = architecture(platform.machine())
        self._unified = (Path("/sys/fs/cgroup") / "cgroup.controllers").exists()

    def write(
        self,
        place: Path,
        container: ContainerSpec,
        images: ContainerImages,
        sandbox: SandboxPlace,
        surroundings: oci_spec.Surroundings,
    ) -> oci_spec.Identity:
        """Into the container's directory; as whom it runs. Blocking. Raises OSError,
        RuntimeFailure."""
        own, users_file = container.security.users, None
        make_sources(container.mounts)
        if own is None:
            root = mount_root(place, images.own.lowers)
        else:
            users_file = sandbox.directory / USERS
            root = mount_root_of_users(place, images.own.lowers, users_file, own.first)
            container = _mapped(container, place, users_file)
        config = images.own.image.config
        identity = self._identity(container, config.user, root)
        target = BundlePlace(place, root, users_file, own.first if own is not None else 0)
        container = replace(container, mounts=mounts_of(target, container.mounts, images))
        surroundings = replace(surroundings, devices=given_devices(container.devices))
        spec = oci_spec.oci_spec(
            container, sandbox.spec, config, identity, surroundings, self._machine
        )
        if container.cdi_devices:
            _add_cdi_devices(container.cdi_devices, spec)
        if not container.security.privileged:
            self._restrict_calls(spec, container.security.seccomp)
        (place / "config.json").write_text(json.dumps(spec))
        return identity

    def _identity(self, container: ContainerSpec, user: str, root: Path) -> oci_spec.Identity:
        identity = users.identity_of(
            container.security,
            user,
            users.text_inside(root, "etc", "passwd"),
            users.text_inside(root, "etc", "group"),
        )
        if self._machine.has_one_user and (identity.uid or identity.gid):
            if not container.security.asks_for_user:
                # The image's user is nobody in particular: whoever started sampan is the only one.
                return oci_spec.Identity(groups=(), home=identity.home)
            raise RuntimeFailure(
                f"it is to run as user {identity.uid} and group {identity.gid}, and there is one "
                "user for all containers: give yourself more (/etc/subuid and /etc/subgid)"
            )
        return identity

    def _restrict_calls(self, spec: dict[str, Any], wanted: str) -> None:
        allowed = spec["process"]["capabilities"]["bounding"]
        profile = seccomp.profile(wanted, self._architecture, allowed)
        if profile is None:
            return
        compiled = self._filters.compiled(profile) if self._is_crun else ""
        if compiled:
            spec["annotations"]["run.oci.seccomp_bpf_data"] = compiled
        else:
            spec["linux"]["seccomp"] = profile

    def surroundings(
        self, record: ContainerRecord, sandbox: SandboxPlace, processes: str
    ) -> oci_spec.Surroundings:
        """`processes`: a process namespace to join; empty: the pod's shared one, or one of its own.
        Raises RuntimeFailure."""
        place = sandbox.directory
        namespaces = {kind: str(place / kind) for kind in sandbox.record.namespaces}
        if processes:
            namespaces["pid"] = processes
        elif sandbox.record.shares_processes:
            namespaces["pid"] = process_namespace(place)
            if not namespaces["pid"]:
                raise RuntimeFailure("the first process of the pod is gone")
        files = {"/etc/resolv.conf": str(place / "resolv.conf")}
        if UTS in sandbox.record.namespaces:
            files["/etc/hostname"] = str(place / "hostname")
        parent = sandbox.spec.cgroup_parent
        return oci_spec.Surroundings(
            namespaces,
            files,
            "" if sandbox.spec.security.host_ipc else str(place / "shm"),
            f"{parent or '/sampan'}/{record.id}",
            self._unified,
            offered_controllers(parent) if self._unified and parent else None,
        )


def make_sources(mounts: Sequence[Mount]) -> None:
    """As other runtimes: a path of the node that is not there is made, as a directory."""
    for mount in mounts:
        if mount.host_path and not os.path.lexists(mount.host_path):
            os.makedirs(mount.host_path, 0o755, exist_ok=True)


def _add_cdi_devices(names: Sequence[str], spec: dict[str, Any]) -> None:
    """Raises RuntimeFailure."""
    try:
        cdi.apply(cdi.edits_of(names, cdi.read()), spec)
    except cdi.CdiFailure as error:
        raise RuntimeFailure(f"CDI device injection failed: {error}") from error


def _mapped(container: ContainerSpec, place: Path, users_file: Path) -> ContainerSpec:
    """With its volumes as the pod's own users see them. Raises OSError, RuntimeFailure."""
    mounts = []
    for number, mount in enumerate(container.mounts):
        if not mount.host_path:
            mounts.append(mount)
            continue
        target = place / VOLUMES / str(number)
        mount_mapped(mount.host_path, target, users_file)
        mounts.append(replace(mount, host_path=str(target)))
    return replace(container, mounts=tuple(mounts))
