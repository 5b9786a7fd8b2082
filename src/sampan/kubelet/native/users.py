"""Users of a container: names of the image's own users and groups as numbers.

Job: what pod and image say, and the image's passwd and group files → an Identity. Pure, but for
    reading the two files.
Invariant: a user that is digits is that number, whoever bears it as a name.
Invariant: no link inside the image leads to a file of the node.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from sampan.core.digits import number_up_to
from sampan.kubelet.contracts.runtime import RuntimeFailure, SecurityContext
from sampan.kubelet.native.oci_spec import Identity

_MOST_BYTES = 1 << 20
_SHOWN = 100  # characters of a name that is told to somebody
LARGEST_ID = 2**31 - 1  # as containerd and the API have it
LARGEST_INTEGER = 2**63 - 1


def identity_of(security: SecurityContext, image_user: str, passwd: str, group: str) -> Identity:
    """Raises RuntimeFailure."""
    user, group_name = _named(security, image_user)
    known = _find(passwd, user)
    number = number_up_to(LARGEST_ID, user)
    if known is not None:
        name, uid, gid, home = known
    elif number is not None:
        name, uid, gid, home = "", number, 0, "/"
    else:
        raise RuntimeFailure(
            f"unable to find user {user[:_SHOWN]}: no matching entries in passwd file",
            reason="CreateContainerError",
        )
    _refuse_another(security, uid)
    if security.run_as_group is not None:
        gid = security.run_as_group
    elif group_name:
        gid = _group(group, group_name)
    groups = {gid, *security.supplemental_groups}
    if name and not security.only_given_groups:
        groups |= {number for _, number, members in _groups(group) if name in members}
    return Identity(uid, gid, tuple(sorted(groups)), home)


def image_user(text: str) -> tuple[int | None, str]:
    """What an image says of its user, as a number or else as a name; without a word it is root."""
    user = text.partition(":")[0]
    number = number_up_to(LARGEST_INTEGER, user)
    return (number, "") if number is not None else (None if user else 0, user)


def _refuse_another(security: SecurityContext, uid: int) -> None:
    """The kubelet has verified a number: what runs is that one, whatever the image's files say."""
    if security.run_as_user is not None and uid != security.run_as_user:
        raise RuntimeFailure(
            f"user {security.run_as_user} was asked for, the image makes it user {uid}",
            reason="CreateContainerError",
        )


def _named(security: SecurityContext, image_user: str) -> tuple[str, str]:
    """User and group; the pod's word counts more than the image's."""
    if security.run_as_user is not None:
        return str(security.run_as_user), ""
    user, _, group = image_user.partition(":")
    return security.run_as_username or user or "0", group


def _group(group: str, name: str) -> int:
    number = number_up_to(LARGEST_ID, name)
    if number is not None:
        return number
    for found, gid, _ in _groups(group):
        if found == name:
            return gid
    raise RuntimeFailure(
        f"unable to find group {name[:_SHOWN]}: no matching entries in group file",
        reason="CreateContainerError",
    )


def _find(passwd: str, user: str) -> tuple[str, int, int, str] | None:
    """Name, user, group and home. As containerd: digits are a number, never somebody's name."""
    number = number_up_to(LARGEST_ID, user)
    for entry in _entries(passwd, 7):
        uid, gid = number_up_to(LARGEST_ID, entry[2]), number_up_to(LARGEST_ID, entry[3])
        if uid is None or gid is None:
            continue
        if uid == number or (number is None and entry[0] == user):
            return entry[0], uid, gid, entry[5] or "/"
    return None


def _groups(group: str) -> Iterator[tuple[str, int, list[str]]]:
    for entry in _entries(group, 4):
        gid = number_up_to(LARGEST_ID, entry[2])
        if gid is not None:
            yield entry[0], gid, entry[3].split(",")


def _entries(text: str, fields: int) -> Iterator[list[str]]:
    entries = (line.split(":") for line in text.split("\n"))
    return (entry for entry in entries if len(entry) >= fields)


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
