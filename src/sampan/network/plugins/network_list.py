"""Which CNI plugins a user has configured, and what each is told. Pure, but for reading the files.

Job: a directory of configurations → the list that counts; a list, a command and what came before →
    what each plugin gets at its standard input; a result → the pod's addresses.
Invariant: the first file by name counts, as for every runtime; what is wrong in it is said.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, object_in

_ENDINGS = (".conf", ".conflist", ".json")
_MOST_BYTES = 1 << 20
_FIRST_WITH_CHECKS = (0, 4, 0)  # from here on a deletion is told the result, too


class NotConfigured(Exception):
    """The message says what is missing, or wrong."""


@dataclass(frozen=True, slots=True)
class NetworkList:
    name: str
    version: str
    plugins: tuple[Obj, ...]

    def told(self, plugin: Obj, capabilities: Mapping[str, Any], previous: Obj | None) -> bytes:
        """What one of them reads. Of `capabilities` each gets those that it says it has."""
        wanted = plugin.get("capabilities") or {}
        given = {name: value for name, value in capabilities.items() if wanted.get(name)}
        said = {name: value for name, value in plugin.items() if name != "capabilities"}
        said |= {"name": self.name, "cniVersion": self.version}
        if given:
            said["runtimeConfig"] = given
        if previous is not None:
            said["prevResult"] = previous
        return json.dumps(said).encode()

    @property
    def tells_deletions(self) -> bool:
        """Do plugins of this version get the result when they are to take it back?"""
        numbers = [int(part) if is_digits(part) else 0 for part in self.version.split(".")]
        return tuple(numbers) >= _FIRST_WITH_CHECKS


def configured_list(directory: Path) -> NetworkList:
    """Raises NotConfigured."""
    try:
        files = sorted(file for file in directory.iterdir() if file.suffix in _ENDINGS)
    except OSError:
        files = []
    if not files:
        raise NotConfigured(f"no network config found in {directory}")
    return _list_in(files[0])


def _list_in(file: Path) -> NetworkList:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise NotConfigured(f"{file} is too large")
        found = object_in(file.read_bytes())
    except (OSError, Damaged) as error:
        raise NotConfigured(f"failed to load CNI config file {file}: {error}") from error
    try:
        return list_of(found)
    except NotConfigured as error:
        raise NotConfigured(f"{file}: {error}") from error


def list_of(found: Any) -> NetworkList:
    """Of a list, or of one plugin alone, which is a list of one. Raises NotConfigured."""
    if not isinstance(found, dict):
        raise NotConfigured("it is no JSON object")
    plugins = found.get("plugins", [found])
    if not isinstance(plugins, list) or not plugins:
        raise NotConfigured("it has no plugins")
    for plugin in plugins:
        if not isinstance(plugin, dict) or not isinstance(plugin.get("type"), str):
            raise NotConfigured('a plugin of it has no "type"')
        if not isinstance(plugin.get("capabilities") or {}, dict):
            raise NotConfigured('"capabilities" of a plugin are no object')
    name = found.get("name")
    if not isinstance(name, str) or not name:
        raise NotConfigured('it has no "name"')
    return NetworkList(name, str(found.get("cniVersion") or "0.1.0"), tuple(plugins))


def addresses_in(result: Obj, interface: str) -> tuple[str, ...]:
    """Those of the pod's interface, as the result of any version says them."""
    ends = dict(enumerate(result.get("interfaces") or ()))
    found = []
    for entry in result.get("ips") or ():
        end = ends.get(entry.get("interface", -1))
        if end is None or end.get("name") == interface:
            found.append(entry["address"])
    for family in ("ip4", "ip6"):  # before 0.3.0
        if family in result:
            found.append(result[family]["ip"])
    return tuple(str(address).partition("/")[0] for address in found)
