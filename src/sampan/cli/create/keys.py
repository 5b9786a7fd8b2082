"""Data of config maps and secrets: literals, files, directories, env files.

Job: sources on the command line become keys and bytes, checked as kubectl checks them.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from sampan.cli.errors import CliError
from sampan.cli.flags import Flag
from sampan.core.patterns import lazy_pattern

_KEY = lazy_pattern(r"[-._a-zA-Z0-9]+$")
_ENV = lazy_pattern(r"[-._a-zA-Z][-._a-zA-Z0-9]*$")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
ENV_RULE = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or "
    "'.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or "
    "'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
)


def env_problems(name: str) -> list[str]:
    """What kubectl finds wrong with the name of a variable."""
    problems = [] if _ENV.match(name) else [ENV_RULE]
    if name in (".", ".."):
        problems.append(f"must not be '{name}'")
    elif name.startswith(".."):
        problems.append("must not start with '..'")
    return problems


SOURCES = (
    Flag("from-file", "slice", [], "Key and file ([key=]path), or a directory of files."),
    Flag("from-literal", "array", [], "Key and literal value (key=value)."),
    Flag("from-env-file", "slice", [], "A file of lines key=value."),
)


class Keys:
    """The collected data; `what` is the kind that messages name."""

    def __init__(self, what: str, name: str) -> None:
        self.data: dict[str, bytes] = {}
        self._what, self._name = what, name

    def add_literals(self, sources: list[str]) -> None:
        for source in sources:
            key, equals, value = source.partition("=")
            if not equals or not key:
                raise CliError(f"invalid literal source {source}, expected key=value")
            self._add(key, value.encode())

    def add_files(self, sources: list[str], stdin: bytes | None = None) -> None:
        for source in sources:
            key, path = _file_source(source)
            if os.path.isdir(path):
                if "=" in source:
                    raise CliError("cannot give a key name for a directory path")
                for entry in sorted(os.listdir(path)):
                    inner = os.path.join(path, entry)
                    if os.path.isfile(inner) and not os.path.islink(inner):
                        self._add(entry, Path(inner).read_bytes())
            elif path == "/dev/stdin" and stdin is not None:
                self._add(key, stdin)
            else:
                self._add(key, _read(path))

    def add_env_files(self, paths: list[str], environment: Mapping[str, str]) -> None:
        for path in paths:
            if os.path.isdir(path):
                raise CliError("env config file cannot be a directory")
            for line in _read(path).decode(errors="replace").splitlines():
                line = line.lstrip()
                if not line or line.startswith("#"):
                    continue
                key, equals, value = line.partition("=")
                if problems := env_problems(key):
                    raise CliError(f'"{key}" is not a valid key name: {";".join(problems)}')
                self._add(key, (value if equals else environment.get(key, "")).encode())

    def _add(self, key: str, value: bytes) -> None:
        if not _KEY.match(key):
            if self._what == "ConfigMap":
                raise CliError(f'"{key}" is not a valid key name for a ConfigMap: {_KEY_RULE}')
            raise CliError(f'"{key}" is not valid key name for a Secret {_KEY_RULE}')
        if key in self.data:
            if self._what == "ConfigMap":
                raise CliError(
                    f'cannot add key "{key}", another key by that name already exists in Data for '
                    f'ConfigMap "{self._name}"'
                )
            raise CliError(f"cannot add key {key}, another key by that name already exists")
        self.data[key] = value


def _file_source(source: str) -> tuple[str, str]:
    parts = source.split("=")
    if len(parts) == 1:
        return os.path.basename(source), source
    if source.startswith("="):
        raise CliError(f"key name for file path {source[1:]} missing")
    if source.endswith("="):
        raise CliError(f"file path for key name {source[:-1]} missing")
    if len(parts) > 2:
        raise CliError("key names or file paths cannot contain '='")
    return parts[0], parts[1]


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CliError(f"error reading {path}: {(error.strerror or str(error)).lower()}") from error
