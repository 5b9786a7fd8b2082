"""Where flags get their values when they are not given: a file, and the environment.

Job: `--config FILE` (a ClusterConfiguration) and SAMPAN_* variables as arguments.
Invariant: what is given on the command line wins, then the environment, then the file.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampan.cmd.errors import CannotStart, reason_of

PREFIX = "SAMPAN_"
API_VERSION, KIND = "sampan.dev/v1", "ClusterConfiguration"


def arguments(
    parser: argparse.ArgumentParser, given: list[str], environment: Mapping[str, str]
) -> list[str]:
    """Arguments of the file and the environment, to stand before those that were given."""
    flags = settings_of(parser)
    found: list[str] = []
    path = _config_path(given) or environment.get(f"{PREFIX}CONFIG", "")
    # `--config` of another kind (a scheduler's) is the verb's own affair.
    if path and ("--config" not in flags or flags["--config"].dest == "config"):
        for key, value in _read(path).items():
            name = f"--{_dash(key)}"
            if name not in flags:
                raise CannotStart(f"{path}: {key} is no setting: {_known(name, list(flags))}")
            found += _arguments_of(name, flags[name], value, path)
    for name, action in flags.items():
        variable = PREFIX + name.removeprefix("--").replace("-", "_").upper()
        if variable in environment and name != "--config":
            found += _arguments_of(name, action, environment[variable], variable)
    return found


def settings_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """By flag: what a file and the environment may say."""
    return {
        name: action
        for action in parser._actions
        if action.help is not argparse.SUPPRESS
        for name in action.option_strings
        if name.startswith("--") and name != "--help"
    }


def _known(name: str, flags: list[str]) -> str:
    import difflib  # for who made a mistake

    close = difflib.get_close_matches(name, flags, n=2)
    if close:
        return f"did you mean {' or '.join(camel(flag) for flag in close)}?"
    return "`sampan config explain` says which there are"


def camel(flag: str) -> str:
    """`--data-dir` as a file has it: dataDir."""
    first, *rest = flag.removeprefix("--").split("-")
    return first + "".join(word.capitalize() for word in rest)


def _config_path(given: list[str]) -> str:
    for index, word in enumerate(given):
        if word.startswith("--config="):
            return word.partition("=")[2]
        if word == "--config" and index + 1 < len(given):
            return given[index + 1]
    return ""


def _dash(key: str) -> str:
    """`dataDir` and `data-dir` are the same setting."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in key)


def _read(path: str) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(Path(path).read_bytes()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise CannotStart(f"{path}: {reason_of(error)}") from error
    if not isinstance(document, dict):
        raise CannotStart(f"{path}: not a {KIND}: the top is not a mapping")
    version, kind = document.pop("apiVersion", API_VERSION), document.pop("kind", KIND)
    if (version, kind) != (API_VERSION, KIND):
        raise CannotStart(f"{path}: {version} {kind} is not {API_VERSION} {KIND}")
    return document


def _arguments_of(name: str, action: argparse.Action, value: Any, where: str) -> list[str]:
    if action.nargs == 0:  # a switch
        text = str(value).lower()
        if text not in ("true", "false", "1", "0", ""):
            raise CannotStart(f"{where}: {name} is a switch: true or false, not {value!r}")
        return [name] if text in ("true", "1") else []
    if isinstance(value, dict):
        value = [f"{key}={item}" for key, item in value.items()]
    if isinstance(action, argparse._AppendAction):  # given once for each
        items = value if isinstance(value, list) else str(value).split(",")
        return [f"{name}={item}" for item in items]
    if isinstance(value, list):
        value = ",".join(str(item) for item in value)
    if isinstance(value, bool):
        value = "true" if value else "false"
    return [f"{name}={value}"]
