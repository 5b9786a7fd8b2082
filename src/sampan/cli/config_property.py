"""`config set` and `config unset`: a dotted name, and the field of a kubeconfig that it means.

Job: name to steps, steps to a change. Pure.
Invariant: a name may have dots: it ends where a field of its struct follows.
"""

import base64
from typing import Any

from sampan.api import go_base64
from sampan.api.objects import Obj
from sampan.cli.config_file import Config
from sampan.cli.errors import CliError
from sampan.cli.flags import truth
from sampan.client.kubeconfig_types import (
    BOOL,
    BYTES,
    ENTRIES,
    LISTS_OF_TEXTS,
    PREFERENCES,
    SECTIONS,
    STRING,
    STRINGS,
)  # fmt: skip

# client-go steps through its inner structs, which have other names for these.
_INNER_NAMES = {
    "as": "act-as", "as-uid": "act-as-uid", "as-groups": "act-as-groups",
    "as-user-extra": "act-as-user-extra",
}  # fmt: skip
_TEXTS = ("kind", "apiVersion", "current-context")


def change(config: Config, name: str, value: str | None, *, raw_bytes: bool = False) -> None:
    """`value` None: the field is unset. Raises CliError, with nothing changed."""
    steps = name.split(".")
    first, rest = steps[0], steps[1:]
    if first in SECTIONS:
        _change_section(config, first, rest, name, value, raw_bytes)
    elif first == "preferences":
        _change_preferences(config, rest, name, value)
    elif first not in (*_TEXTS, "extensions"):
        raise CliError(f"unable to parse {name} after [] at api.Config")
    elif rest:
        raise CliError(f"unable to parse one or more field values of {name}")
    elif first == "current-context":
        config.current = value or ""
    elif first == "extensions":
        if value is not None:
            raise CliError(f"can't set a map to a value: {name}")
        config.rest.pop("extensions", None)
    # Kind and version of a kubeconfig are always the same.


def _change_section(
    config: Config, section: str, steps: list[str], name: str, value: str | None, raw: bool
) -> None:
    entries = config.entries[section]
    if not steps:
        if value is not None:
            raise CliError(f"can't set a map to a value: {name}")
        entries.clear()
        return
    fields = {_INNER_NAMES.get(field, field): field for field in ENTRIES[section].fields}
    end = next((at for at, step in enumerate(steps) if at and step in fields), len(steps))
    key, path = ".".join(steps[:end]), steps[end:]
    if not path:
        if value is not None:
            raise CliError(f"can't set a map to a value: {name}")
        entries.pop(key, None)
        return
    if len(path) > 1:
        raise CliError(f"unable to parse one or more field values of {name}")
    field = fields[path[0]]
    kind = ENTRIES[section].fields[field]
    if value is None and key not in entries:
        raise CliError(f"current map key `{key}` is invalid")
    typed = None if value is None else _typed(kind, value, name, raw)
    _put(entries.setdefault(key, {}), field, typed)


def _change_preferences(config: Config, steps: list[str], name: str, value: str | None) -> None:
    if not steps:
        if value is not None:
            raise CliError(f"can't set a struct to a value: {name}")
        config.preferences = {}
        return
    if steps[0] not in PREFERENCES.fields:
        raise CliError(f"unable to parse {name} after [{{preferences}}] at api.Preferences")
    if len(steps) > 1:
        raise CliError(f"unable to parse one or more field values of {name}")
    kind = PREFERENCES.fields[steps[0]]
    _put(config.preferences, steps[0], None if value is None else _typed(kind, value, name, False))


def _put(entry: Obj, field: str, value: Any) -> None:
    """Empty is as if it were not there."""
    if value:
        entry[field] = value
    else:
        entry.pop(field, None)


def _typed(kind: Any, value: str, name: str, raw_bytes: bool) -> Any:
    if kind == STRING:
        return value
    if kind == BOOL:
        try:
            return truth(value)
        except ValueError as error:
            raise CliError(str(error)) from error
    if kind == BYTES:
        return _bytes(value, raw_bytes)
    if kind == STRINGS:
        raise CliError("unrecognized slice type. string")
    if kind == LISTS_OF_TEXTS or isinstance(kind, list):
        raise CliError(f"can't set a map to a value: {name}")
    raise CliError(f"can't set a struct to a value: {name}")


def _bytes(value: str, is_raw: bool) -> str:
    """In base64, as the file has them."""
    if is_raw:
        return base64.b64encode(value.encode()).decode()
    try:
        return base64.b64encode(go_base64.decoded(value)).decode()
    except ValueError as error:
        raise CliError(f"error decoding input value: {error}") from error
