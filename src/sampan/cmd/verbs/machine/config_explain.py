"""`sampan config explain`: what a ClusterConfiguration may say, with the variable of each setting.

Job: the flags of `sampan up` as settings of a file, as lines or as a JSON schema.
"""

import argparse
import json
import sys
from typing import Any

from sampan.cmd.flags.defaults import API_VERSION, KIND, PREFIX, camel, settings_of

WIDTH = 44


def run(up: argparse.ArgumentParser, setting: str, *, as_schema: bool) -> int:
    settings = {camel(flag): action for flag, action in settings_of(up).items()}
    if as_schema:
        print(json.dumps(schema(settings), indent=2))
        return 0
    if setting and setting not in settings:
        print(f"sampan: {setting} is no setting: `sampan config explain` lists them",
              file=sys.stderr)  # fmt: skip
        return 1
    if not setting:
        print(f"apiVersion: {API_VERSION}\nkind: {KIND}\n")
    for name, action in sorted(settings.items()):
        if setting in ("", name):
            print("\n".join(lines_of(name, action)))
    return 0


def lines_of(name: str, action: argparse.Action) -> list[str]:
    kind = type_of(action)
    shape = f"[]{kind['items']['type']}" if kind["type"] == "array" else kind["type"]
    flag = action.option_strings[-1]
    variable = PREFIX + flag.removeprefix("--").replace("-", "_").upper()
    return [f"{name} <{shape}>".ljust(WIDTH) + f"{variable}", f"    {_help(action)}"]


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return f"{text} [{', '.join(map(str, action.choices))}]" if action.choices else text


def schema(settings: dict[str, argparse.Action]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
    }
    for name, action in sorted(settings.items()):
        properties[name] = {**type_of(action), "description": _help(action)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def type_of(action: argparse.Action) -> dict[str, Any]:
    """As a file may write it."""
    if action.nargs == 0 or isinstance(action.default, bool):
        return {"type": "boolean"}
    if action.choices:
        return {"type": "string", "enum": list(action.choices)}
    if isinstance(action.default, (tuple, list)):
        return {"type": "array", "items": {"type": "string"}}
    if isinstance(action.default, int) or "--port" in action.option_strings:
        return {"type": "integer"}
    return {"type": "string"}
