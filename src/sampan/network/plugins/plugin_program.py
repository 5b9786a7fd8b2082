"""One call of a CNI plugin: a program of the user's, with its environment and standard input.

Job: find it, run it, and return its result or its complaint.
Invariant: the messages are those that other runtimes give, so that their users find them.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

SECONDS = 120.0
_VERBS = {"ADD": "add", "DEL": "delete"}


class PluginFailed(Exception):
    """The message is what the pod's event is to say."""


@dataclass(frozen=True, slots=True)
class Call:
    command: str  # ADD or DEL
    container: str
    namespace: str  # a path; empty: it is gone
    interface: str
    arguments: str  # of CNI_ARGS: K8S_POD_NAME=…;…
    directory: str  # of the plugins

    def environment(self, surroundings: Mapping[str, str]) -> dict[str, str]:
        return {
            **surroundings,
            "CNI_COMMAND": self.command,
            "CNI_CONTAINERID": self.container,
            "CNI_NETNS": self.namespace,
            "CNI_IFNAME": self.interface,
            "CNI_ARGS": self.arguments,
            "CNI_PATH": self.directory,
        }


def run_plugin(
    plugin: Obj, configuration: bytes, call: Call, surroundings: Mapping[str, str]
) -> Any:
    """What it printed; None: nothing. Blocking. Raises PluginFailed."""
    try:
        return _run(plugin["type"], configuration, call, surroundings)
    except PluginFailed as error:
        name = f' name="{plugin["name"]}"' if plugin.get("name") else ""
        described = f'plugin type="{plugin["type"]}"{name} failed ({_VERBS[call.command]})'
        raise PluginFailed(f"{described}: {error}") from error


def is_there(plugin: Obj, call: Call) -> bool:
    program = _program(plugin["type"], call)
    return program is not None and program.is_file()


def _program(kind: str, call: Call) -> Path | None:
    """None: that is a path, and no name."""
    return Path(call.directory) / kind if kind and os.sep not in kind else None


def _run(kind: str, configuration: bytes, call: Call, surroundings: Mapping[str, str]) -> Any:
    program = _program(kind, call)
    if program is None:
        raise PluginFailed(f"invalid plugin name: {kind}")
    if not program.is_file():
        raise PluginFailed(f'failed to find plugin "{kind}" in path [{call.directory}]')
    try:
        done = subprocess.run(
            [program], input=configuration, capture_output=True, env=call.environment(surroundings),
            timeout=SECONDS, check=False, cwd="/",
        )  # fmt: skip
    except OSError as error:
        raise PluginFailed(f"netplugin failed with no error message: {error}") from error
    except subprocess.TimeoutExpired:
        raise PluginFailed(f"netplugin gave no answer in {SECONDS:.0f} s") from None
    if done.returncode != 0:
        raise PluginFailed(_complaint(done.returncode, done.stdout, done.stderr))
    if not done.stdout.strip():
        return None
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        output = done.stdout[:200].decode(errors="replace")
        raise PluginFailed(f"its result {output!r} is no JSON: {error}") from error


def _complaint(code: int, stdout: bytes, stderr: bytes) -> str:
    if not stdout.strip():
        text = stderr.decode(errors="replace").strip()
        end = f"exit status {code}" if code > 0 else f"signal {-code}"
        why = f"netplugin failed: {text!r}"
        return why if text else f"netplugin failed with no error message: {end}"
    try:
        output = json.loads(stdout)
        details = f"; {output['details']}" if output.get("details") else ""
        return f"{output.get('msg') or ''}{details}"
    except (ValueError, AttributeError) as error:
        text = stdout[:200].decode(errors="replace")
        return f"netplugin failed but error parsing its diagnostic message {text!r}: {error}"
