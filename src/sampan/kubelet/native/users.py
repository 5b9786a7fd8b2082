"""Who runs in a container: names of the image's own users and groups as numbers.

Job: what pod and image say, and the image's passwd and group files → an Identity. Pure, but for
    reading the two files.
Invariant: no link inside the image leads to a file of the node.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from sampan.kubelet.contracts.runtime import RuntimeFailure, SecurityContext
from sampan.kubelet.native.oci_spec import Identity

_MOST_BYTES = 1 << 20


def identity_of(security: SecurityContext, image_user: str, passwd: str, group: str) -> Identity:
    """Raises RuntimeFailure."""
    user, group_name = _named(security, image_user)
    known = _find(passwd, user)
    if known is None and not user.isdigit():
        raise RuntimeFailure(
            f"unable to find user {user}: no matching entries in passwd file",
            reason="CreateContainerError",
        )
    if known is not None:
        name, uid, gid, home = known[0], int(known[2]), int(known[3]), known[5] or "/"
    else:
        name, uid, gid, home = "", int(user), 0, "/"
    if security.run_as_group is not None:
        gid = security.run_as_group
    elif group_name:
        gid = _group(group, group_name)
    groups = {gid, *security.supplemental_groups}
    if name and not security.only_given_groups:
        groups |= {int(entry[2]) for entry in _entries(group, 4) if name in entry[3].split(",")}
    return Identity(uid, gid, tuple(sorted(groups)), home)


def _named(security: SecurityContext, image_user: str) -> tuple[str, str]:
    """User and group; the pod's word counts more than the image's."""
    if security.run_as_user is not None:
        return str(security.run_as_user), ""
    user, _, group = image_user.partition(":")
    return security.run_as_username or user or "0", group


def _group(group: str, name: str) -> int:
    for entry in _entries(group, 4):
        if name in (entry[0], entry[2]):
            return int(entry[2])
    if name.isdigit():
        return int(name)
    raise RuntimeFailure(
        f"unable to find group {name}: no matching entries in group file",
        reason="CreateContainerError",
    )


def _find(passwd: str, user: str) -> list[str] | None:
    return next((entry for entry in _entries(passwd, 7) if user in (entry[0], entry[2])), None)


def _entries(text: str, fields: int) -> Iterator[list[str]]:
    for line in text.splitlines():
        entry = line.split(":")
        if len(entry) >= fields and entry[2].isdigit() and (fields < 7 or entry[3].isdigit()):
            yield entry


def text_inside(root: Path, *parts: str) -> str:
    """A small file of the image; empty where it is none, or behind a link."""
    opened = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
            inner = os.open(part, flags, dir_fd=opened)
            os.close(opened)
            opened = inner
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened)
        with os.fdopen(file, "rb") as source:
            return source.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(opened)
