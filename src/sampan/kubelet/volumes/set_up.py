"""Carrying out what plan.py decided, and taking it away again. Blocking: runs in a thread.

Job: one `match` over the steps; directories, tmpfs mounts, files, ownership.
Invariant: what is there already is kept: every step can be repeated, also by the next agent.
Invariant: nothing is removed while something is mounted below, and no link is followed: what is
    removed is the pod's own.
"""

import contextlib
import os
import stat
from dataclasses import replace
from typing import assert_never

from sampan.core import mounts
from sampan.core.files.remove_tree import remove_tree
from sampan.kubelet.contracts.volumes_hook import MountedVolume, VolumeFailure
from sampan.kubelet.volumes.atomic_writer import write_payload
from sampan.kubelet.volumes.host_path import check_host_path
from sampan.kubelet.volumes.nfs import mount_nfs
from sampan.kubelet.volumes.ownership import GROUP_READS, give_root_to_group, give_to_group
from sampan.kubelet.volumes.plan import (
    BlockDevice,
    Directory,
    Files,
    HostPath,
    ImageContent,
    LocalPath,
    Nfs,
    OwnStep,
)

_VOLUME_MODE, _PRIVATE_MODE = 0o777, 0o750


def set_up(step: OwnStep, now: float) -> MountedVolume:
    """Raises VolumeFailure."""
    try:
        match step:
            case Directory():
                _directory(step)
                return MountedVolume(step.path, relabel=True)
            case Files():
                _files(step, now)
                return MountedVolume(step.path, read_only=True, relabel=True)
            case HostPath(path=path, type=kind, read_only=read_only):
                check_host_path(path, kind)
                return MountedVolume(path, read_only)
            case LocalPath(path=path, read_only=read_only):
                _local(step)
                return MountedVolume(path, read_only, relabel=not read_only)
            case ImageContent():
                return MountedVolume("", read_only=True)
            case BlockDevice(path=path, read_only=read_only):
                _check_device(path)
                return MountedVolume("", read_only, device=path)
            case Nfs(path=path, read_only=read_only):
                _make(path)
                options = ("ro", *step.options) if read_only else step.options
                mount_nfs(step.source, path, options)
                return MountedVolume(path, read_only)
            case _:
                assert_never(step)
    except (OSError, VolumeFailure) as error:
        raise VolumeFailure(
            f'MountVolume.SetUp failed for volume "{step.name}" : {error}'
        ) from error


def _directory(step: Directory) -> None:
    mounted = step.in_memory or bool(step.page_size)
    if not os.path.isdir(step.path) or (mounted and not os.path.ismount(step.path)):
        _make(step.path)
        if step.page_size:
            mounts.mount("nodev", step.path, "hugetlbfs", 0, f"pagesize={step.page_size}")
            os.chmod(step.path, _VOLUME_MODE)
        elif step.in_memory:
            mounts.mount_tmpfs(step.path, step.size_bytes)
        else:
            os.chmod(step.path, _VOLUME_MODE)
        if step.group is not None:
            give_root_to_group(step.path, step.group)
    if step.shared and not mounts.is_shared(step.path):
        mounts.share(step.path)


def _files(step: Files, now: float) -> None:
    if not os.path.isdir(step.path):
        _make(step.path)
        os.chmod(step.path, _VOLUME_MODE)
    if step.in_memory and not os.path.ismount(step.path):
        mounts.mount_tmpfs(step.path)
    group = step.group
    if group is None:
        write_payload(step.path, step.payload, now)
        return
    give_root_to_group(step.path, group, read_only=True)
    payload = {
        path: replace(file, mode=file.mode | GROUP_READS) for path, file in step.payload.items()
    }
    write_payload(step.path, payload, now, lambda path: give_to_group(path, group, read_only=True))


def _local(step: LocalPath) -> None:
    try:
        mode = os.stat(step.path).st_mode
    except FileNotFoundError as error:
        raise VolumeFailure(f'path "{step.path}" does not exist') from error
    if stat.S_ISBLK(mode):
        raise VolumeFailure(
            f"{step.path} is a block device: local volumes must be directories on this node"
        )
    if step.group is not None and stat.S_ISDIR(mode):
        give_to_group(step.path, step.group, only_on_mismatch=step.only_on_mismatch)


def _check_device(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        raise VolumeFailure(f'path "{path}" does not exist') from error
    if not stat.S_ISBLK(mode):
        raise VolumeFailure(f"{path} is not a block device")


def _make(path: str) -> None:
    """Only the volume itself is for everybody, not the way to it."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for item in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another pod's volume was faster
            os.mkdir(item, _PRIVATE_MODE)


def release_sub_paths(pod_directory: str) -> None:
    """Before a driver takes a volume back, nothing may hold on to a part of it. Raises OSError."""
    if os.path.isdir(f"{pod_directory}/volume-subpaths"):
        mounts.unmount_below(f"{pod_directory}/volume-subpaths")


def tear_down(pod_directory: str, *, whole: bool) -> None:
    """Unmount everything of the pod, then remove its volumes, or (`whole`) all of it. Raises
    OSError."""
    if not os.path.isdir(pod_directory):
        return
    mounts.unmount_below(pod_directory)
    parts = ("volumes", "volume-subpaths", "volumeDevices")
    for path in [pod_directory] if whole else [f"{pod_directory}/{part}" for part in parts]:
        if os.path.isdir(path) and not os.path.islink(path):
            remove_tree(path)
