"""Which system calls a container may use, as the kernel reads it: compiled once, by libseccomp.

Job: an OCI seccomp profile → the filter program that crun makes of it, by the same library; kept
    on the disk for the next start.
Invariant: a filter that is not whole, or of another profile, library or machine, is never used.
Invariant: what cannot be compiled here is left to the OCI runtime, never left out.
"""

import base64
import ctypes
import hashlib
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampan.core.bounded import FlushedMemo
from sampan.core.fast_dataclass import dataclass

MOST_KEPT = 64
_LIBRARY = "libseccomp.so.2"
_EPERM, _EEXIST, _UNKNOWN = 1, 17, -1
_MOST_ARGUMENTS = 6
_ACTIONS = {
    "SCMP_ACT_KILL_PROCESS": 0x80000000, "SCMP_ACT_KILL_THREAD": 0, "SCMP_ACT_KILL": 0,
    "SCMP_ACT_TRAP": 0x00030000, "SCMP_ACT_LOG": 0x7FFC0000, "SCMP_ACT_ALLOW": 0x7FFF0000,
}  # fmt: skip
_WITH_NUMBER = {"SCMP_ACT_ERRNO": 0x00050000, "SCMP_ACT_TRACE": 0x7FF00000}
_COMPARISONS = {
    "SCMP_CMP_NE": 1, "SCMP_CMP_LT": 2, "SCMP_CMP_LE": 3, "SCMP_CMP_EQ": 4, "SCMP_CMP_GE": 5,
    "SCMP_CMP_GT": 6, "SCMP_CMP_MASKED_EQ": 7,
}  # fmt: skip


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("arg", ctypes.c_uint), ("op", ctypes.c_int), ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )  # fmt: skip


class _Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint), ("minor", ctypes.c_uint), ("micro", ctypes.c_uint))


class CannotCompile(Exception):
    """The OCI runtime may know better."""


@dataclass(frozen=True, slots=True)
class Rule:
    action: int
    name: str
    comparisons: tuple[tuple[int, int, int, int], ...] = ()  # index, operator, two values


def rules_of(profile: Mapping[str, Any]) -> list[Rule]:
    """As crun reads them: one rule for each name; comparisons of one argument with several values
    are alternatives. Raises CannotCompile."""
    found = []
    default = action_of(profile["defaultAction"], profile.get("defaultErrnoRet"))
    for entry in profile.get("syscalls") or ():
        action = action_of(entry["action"], entry.get("errnoRet"))
        if action == default:
            continue
        comparisons = [_comparison(given) for given in entry.get("args") or ()]
        for name in entry["names"]:
            found += [Rule(action, name, group) for group in _groups(comparisons)]
    return found


def action_of(name: str, number: int | None) -> int:
    if name in _WITH_NUMBER:
        return _WITH_NUMBER[name] | ((_EPERM if number is None else number) & 0xFFFF)
    if name not in _ACTIONS or number is not None:
        raise CannotCompile(name)
    return _ACTIONS[name]


def _comparison(given: Mapping[str, Any]) -> tuple[int, int, int, int]:
    if given["op"] not in _COMPARISONS or not 0 <= given["index"] < _MOST_ARGUMENTS:
        raise CannotCompile(str(given))
    return given["index"], _COMPARISONS[given["op"]], given["value"], given.get("valueTwo") or 0


def _groups(
    comparisons: list[tuple[int, int, int, int]],
) -> list[tuple[tuple[int, int, int, int], ...]]:
    if len({index for index, *_ in comparisons}) == len(comparisons):
        return [tuple(comparisons)]
    return [(comparison,) for comparison in comparisons]


class SeccompFilters:
    """Owner: the node's containers. Calls are blocking, and may come from several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._library = _library()
        self._known: FlushedMemo[str, str] = FlushedMemo(MOST_KEPT)

    def compiled(self, profile: Mapping[str, Any]) -> str:
        """In base64; empty where that is left to the OCI runtime."""
        if self._library is None or profile.get("flags"):
            return ""
        key = self._key(profile)
        found = self._known.known.get(key) or self._kept(key)
        if not found:
            try:
                found = base64.b64encode(_compile(self._library, profile)).decode()
            except (CannotCompile, KeyError, TypeError, ValueError):
                return ""
            self._keep(key, found)
        return self._known.keep(key, found)

    def _key(self, profile: Mapping[str, Any]) -> str:
        assert self._library is not None
        version = self._library.seccomp_version().contents
        machine = platform.machine(), version.major, version.minor, version.micro
        text = json.dumps([machine, profile], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _kept(self, key: str) -> str:
        try:
            digest, found = (self._directory / key).read_text().split("\n")
        except (OSError, ValueError):
            return ""
        return found if _digest(key, found) == digest else ""

    def _keep(self, key: str, found: str) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for old in os.listdir(self._directory)[MOST_KEPT:]:
                (self._directory / old).unlink(missing_ok=True)
            (self._directory / key).write_text(f"{_digest(key, found)}\n{found}")
        except OSError:
            return  # the next start compiles it again


def _digest(key: str, found: str) -> str:
    return hashlib.sha256(f"{key} {found}".encode()).hexdigest()


def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(_LIBRARY)
        library.seccomp_init.restype = ctypes.c_void_p
        library.seccomp_version.restype = ctypes.POINTER(_Version)
        library.seccomp_arch_resolve_name.restype = ctypes.c_uint32
    except (OSError, AttributeError):
        return None
    return library


def _compile(library: ctypes.CDLL, profile: Mapping[str, Any]) -> bytes:
    """Raises CannotCompile."""
    default = action_of(profile["defaultAction"], profile.get("defaultErrnoRet"))
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(default)))
    if not context:
        raise CannotCompile("seccomp_init")
    output = os.memfd_create("seccomp")
    try:
        for name in profile.get("architectures") or ():
            text = name.removeprefix("SCMP_ARCH_").lower().encode()
            token = library.seccomp_arch_resolve_name(text)
            if not token:
                raise CannotCompile(name)
            added = library.seccomp_arch_add(context, ctypes.c_uint32(token))
            _check(added if added != -_EEXIST else 0)
        for rule in rules_of(profile):
            _add(library, context, rule)
        _check(library.seccomp_export_bpf(context, output))
        return os.pread(output, os.fstat(output).st_size, 0)
    finally:
        os.close(output)
        library.seccomp_release(context)


def _add(library: ctypes.CDLL, context: ctypes.c_void_p, rule: Rule) -> None:
    number = library.seccomp_syscall_resolve_name(rule.name.encode())
    if number == _UNKNOWN:  # as crun: of another kernel or machine, so nobody can call it
        return
    count = len(rule.comparisons)
    given = (_Comparison * count)(*(_Comparison(*values) for values in rule.comparisons))
    _check(
        library.seccomp_rule_add_array(
            context, ctypes.c_uint32(rule.action), number, ctypes.c_uint(count), given
        )
    )


def _check(done: int) -> None:
    if done < 0:
        raise CannotCompile(os.strerror(-done))
