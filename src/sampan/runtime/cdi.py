"""CDI, the container device interface: what a device's name stands for in a container.

Job: read the specifications of a machine's devices (/etc/cdi, /var/run/cdi), find a device by its
    qualified name, and edit a container's OCI spec as they say. Blocking.
Invariant: a name that two files of one directory have is nobody's; the later directory wins.
Invariant: what cannot be applied is a CdiFailure, never left out.
"""

import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TextIO

from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

DIRECTORIES = ("/etc/cdi", "/var/run/cdi")
_EDITS = "containerEdits"
_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
_KINDS = {"b": stat.S_ISBLK, "c": stat.S_ISCHR, "u": stat.S_ISCHR, "p": stat.S_ISFIFO}

Edits = Mapping[str, Any]  # containerEdits, as a file has them


class CdiFailure(Exception):
    """And why."""


@dataclass(slots=True)
class CdiDevices:
    """All that the files name, by their qualified names."""

    edits: dict[str, list[Edits]] = field(default_factory=dict)  # the file's own first
    ambiguous: set[str] = field(default_factory=set)


def read(directories: Sequence[str] = DIRECTORIES) -> CdiDevices:
    found = CdiDevices()
    for directory in directories:
        here: dict[str, list[Edits]] = {}
        twice: set[str] = set()
        for path in _files(directory):
            for name, edits in _devices(path):
                if name in here:
                    twice.add(name)
                here[name] = edits
        found.edits |= here
        found.ambiguous = (found.ambiguous - here.keys()) | twice
    return found


def _files(directory: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [f"{directory}/{name}" for name in names if name.endswith((".json", ".yaml"))]


def _devices(path: str) -> Iterable[tuple[str, list[Edits]]]:
    try:
        with open(path) as file:
            spec = json.load(file) if path.endswith(".json") else _from_yaml(file)
        whole = spec.get(_EDITS) or {}
        return [
            (f"{spec['kind']}={device['name']}", [whole, device.get(_EDITS) or {}])
            for device in spec.get("devices") or ()
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("CDI specification cannot be read", path=path, error=error)
        return []


def _from_yaml(file: TextIO) -> Any:
    """Raises ValueError. Loaded with the first such file: few machines have one."""
    import yaml

    try:
        return yaml.safe_load(file)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def edits_of(names: Iterable[str], devices: CdiDevices) -> list[Edits]:
    """In order, what a file says of all its devices once. Raises CdiFailure."""
    wanted = list(names)
    unknown = [name for name in wanted
               if name not in devices.edits or name in devices.ambiguous]  # fmt: skip
    if unknown:
        raise CdiFailure(f"unresolvable CDI devices {', '.join(unknown)}")
    found: list[Edits] = []
    for name in wanted:
        for edits in devices.edits[name]:
            if edits and not any(edits is known for known in found):
                found.append(edits)
    return found


def apply(edits: Iterable[Edits], spec: dict[str, Any]) -> None:
    """To an OCI spec. Raises CdiFailure."""
    for edit in edits:
        _add_environment(edit.get("env") or (), spec)
        for node in edit.get("deviceNodes") or ():
            _add_device(node, spec)
        for mount in edit.get("mounts") or ():
            spec.setdefault("mounts", []).append(oci_mount(mount))
        for hook in edit.get("hooks") or ():
            _add_hook(hook, spec)
        groups = spec["process"]["user"].setdefault("additionalGids", [])
        groups += [group for group in edit.get("additionalGids") or ()
                   if group and group not in groups]  # fmt: skip
        for name in ("intelRdt", "netDevices"):
            if edit.get(name):
                raise CdiFailure(f"{name} of a CDI device is not supported")


def _add_environment(lines: Iterable[str], spec: dict[str, Any]) -> None:
    found = {line.partition("=")[0]: line for line in spec["process"].get("env") or ()}
    # Other runtimes find out where home is when all else is known: it is the last line there.
    home = found.pop("HOME") if [*found][-1:] == ["HOME"] else ""
    for line in lines:
        found[line.partition("=")[0]] = line
    if home:
        found.setdefault("HOME", home)
    spec["process"]["env"] = list(found.values())


def device_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """As an OCI spec has it: what the file leaves out is read from the device. Raises
    CdiFailure."""
    path = node["path"]
    host = node.get("hostPath") or path
    made = {"path": path, "type": node.get("type") or "",
            "major": node.get("major"), "minor": node.get("minor")}  # fmt: skip
    for key in ("fileMode", "uid", "gid"):
        if node.get(key) is not None:
            made[key] = node[key]
    if made["type"] and (made["major"] is not None or made["type"] == "p"):
        return {key: value for key, value in made.items() if value is not None}
    try:
        status = os.stat(host)
    except OSError as error:
        raise CdiFailure(f"no device at {host}: {error.strerror}") from error
    kind = next((kind for kind, is_it in _KINDS.items() if is_it(status.st_mode)), "")
    if not kind or made["type"] not in ("", kind):
        raise CdiFailure(f"{host} is not such a device")
    made |= {"type": kind, "major": os.major(status.st_rdev), "minor": os.minor(status.st_rdev)}
    made.setdefault("fileMode", stat.S_IMODE(status.st_mode))
    return made


def _add_device(node: Mapping[str, Any], spec: dict[str, Any]) -> None:
    linux = spec.setdefault("linux", {})
    made = device_node(node)
    kept = [item for item in linux.get("devices") or () if item["path"] != made["path"]]
    linux["devices"] = [*kept, made]
    if made["type"] in ("b", "c"):
        rules = linux.setdefault("resources", {}).setdefault("devices", [])
        access = node.get("permissions") or "rwm"
        rules.append({"allow": True, "type": made["type"], "major": made["major"],
                      "minor": made["minor"], "access": access})  # fmt: skip


def oci_mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "destination": mount["containerPath"],
        "source": mount["hostPath"],
        "type": mount.get("type") or "bind",
        "options": list(mount.get("options") or ["rbind", "ro"]),
    }


def _add_hook(hook: Mapping[str, Any], spec: dict[str, Any]) -> None:
    name = hook.get("hookName")
    if name not in _HOOKS:
        raise CdiFailure(f"unknown hook {name!r} of a CDI device")
    made = {key: hook[key] for key in ("path", "args", "env", "timeout") if hook.get(key)}
    spec.setdefault("hooks", {}).setdefault(name, []).append(made)
