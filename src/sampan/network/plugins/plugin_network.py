"""Pods on the network of CNI plugins that the user configures, where no other runtime calls them.

Job: have the configured plugins make a pod's interface, one after the other, and take it back.
Invariant: what is to be taken back is on the disk before the first plugin is called, and stays
    there until all have taken it back: whoever is killed in between, a deletion is made up for.
Invariant: a pod is taken back by the configuration that it was made with, whatever is configured by
    then.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, json_object
from sampan.core.log import get_logger
from sampan.network.plugins.network_list import (
    NetworkList,
    NotConfigured,
    addresses_in,
    configured_list,
    list_of,
)
from sampan.network.plugins.plugin_program import Call, PluginFailed, is_there, run_plugin

INTERFACE = "eth0"
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PluginPlaces:
    configurations: Path
    programs: Path
    records: Path  # of our own


@dataclass(frozen=True, slots=True)
class PodOfPlugins:
    """What plugins are told of a pod."""

    namespace: str
    name: str
    uid: str
    capabilities: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Record:
    """What it takes to take a pod's network back."""

    list: Obj
    directory: str
    arguments: str
    capabilities: Mapping[str, Any]
    result: Obj | None = None


class PluginNetwork:
    def __init__(self, places: PluginPlaces, environment: Mapping[str, str]) -> None:
        self._places, self._environment = places, dict(environment)
        places.records.mkdir(parents=True, exist_ok=True)

    def why_not_ready(self) -> str:
        """Empty: a pod can be given a network."""
        try:
            configured_list(self._places.configurations)
        except NotConfigured as error:
            return str(error)
        return ""

    async def attach(self, container: str, namespace: str, pod: PodOfPlugins) -> tuple[str, ...]:
        """Its addresses. `namespace`: a path. Raises PluginFailed, OSError."""
        return await asyncio.to_thread(self._attach, container, namespace, pod)

    def _attach(self, container: str, namespace: str, pod: PodOfPlugins) -> tuple[str, ...]:
        try:
            chosen = configured_list(self._places.configurations)
        except NotConfigured as error:
            raise PluginFailed(str(error)) from error
        written = {"name": chosen.name, "cniVersion": chosen.version, "plugins": [*chosen.plugins]}
        arguments = (
            f"IgnoreUnknown=1;K8S_POD_NAMESPACE={pod.namespace};K8S_POD_NAME={pod.name};"
            f"K8S_POD_INFRA_CONTAINER_ID={container};K8S_POD_UID={pod.uid}"
        )
        record = _Record(written, str(self._places.programs), arguments, pod.capabilities)
        self._put(container, record)
        result = self._add(chosen, record, container, namespace)
        self._put(container, replace(record, result=result))
        try:
            addresses = addresses_in(result, INTERFACE)
        except (AttributeError, KeyError, TypeError) as error:
            raise PluginFailed(f"the result of the plugins cannot be read: {error!r}") from error
        if not addresses:
            raise PluginFailed(f'failed to find network info for sandbox "{container}"')
        return addresses

    def _add(self, chosen: NetworkList, record: _Record, container: str, namespace: str) -> Obj:
        result: Obj | None = None
        call = _call("ADD", container, namespace, record)
        for plugin in chosen.plugins:
            told = chosen.told(plugin, record.capabilities, result)
            said = run_plugin(plugin, told, call, self._environment)
            result = said if isinstance(said, dict) else result
        return result or {}

    async def detach(self, container: str, namespace: str) -> None:
        """`namespace`: empty where it is gone. What is taken back already is no error. Raises
        PluginFailed, OSError."""
        await asyncio.to_thread(self._detach, container, namespace)

    def _detach(self, container: str, namespace: str) -> None:
        record = self._record(container)
        if record is None:
            return
        made_with = list_of(record.list)
        previous = record.result if made_with.tells_deletions else None
        call = _call("DEL", container, namespace, record)
        for plugin in reversed(made_with.plugins):
            if record.result is None and not is_there(plugin, call):
                continue  # it was missing when the pod was to be made, too
            told = made_with.told(plugin, record.capabilities, previous)
            run_plugin(plugin, told, call, self._environment)
        self._file(container).unlink(missing_ok=True)

    def _file(self, container: str) -> Path:
        return self._places.records / f"{container}.json"

    def _put(self, container: str, record: _Record) -> None:
        file = self._file(container)
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(record)))
        fresh.replace(file)

    def _record(self, container: str) -> _Record | None:
        """A file that is cut off was written when the machine stopped: nothing was made then."""
        file = self._file(container)
        if not file.exists():
            return None
        try:
            found = _Record(**json_object(file))
            list_of(found.list)
            return found
        except (Damaged, NotConfigured, TypeError) as error:
            log.warning("record of a pod's CNI result unreadable", error=error)
            return None


def _call(command: str, container: str, namespace: str, record: _Record) -> Call:
    return Call(command, container, namespace, INTERFACE, record.arguments, record.directory)
