"""OpenAPI version 2 of other servers, in the one document that there is of that version. Pure.

Job: take out of another server's document what concerns its group version, and put it into ours.
Invariant: whatever the other document is, ours stays one that clients can read: what does not fit
    is left out as a whole.
Invariant: a definition of ours is never changed by another's of the same name: theirs is renamed.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from sampan.api.objects import Obj
from sampan.apiserver.openapi.protobuf import encode

_PREFIX, _SHARED = "#/definitions/", "#/parameters/"
# What a document that is none may raise when it is read as one.
_ODD = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def with_foreign_v2(own: Obj, body: bytes, prefix: str) -> Obj:
    """`prefix`: /apis/GROUP/VERSION."""
    if not body:
        return own
    try:
        part = _part_of(orjson.loads(body), prefix)
        renamed = _renamed(part, own["definitions"])
        encode({"swagger": "2.0", "info": {"title": "", "version": ""}, **renamed})
    except _ODD:
        return own
    return {
        **own,
        "paths": {**own["paths"], **renamed["paths"]},
        "definitions": {**own["definitions"], **renamed["definitions"]},
    }


def _part_of(document: Obj, prefix: str) -> Obj:
    """The paths of one group version, and the definitions that they need."""
    shared: Obj = document.get("parameters") or {}
    paths = {
        path: _in_place(item, shared)
        for path, item in document["paths"].items()
        if path == prefix or path.startswith(f"{prefix}/")
    }
    known: Obj = document.get("definitions") or {}
    waiting, found = list(_references(paths)), {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name]
            waiting += _references(known[name])
    return {"paths": paths, "definitions": found}


def _in_place(value: Any, shared: Obj) -> Any:
    """Parameters that their document says once, where they are used: ours has others."""
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str) and target.startswith(_SHARED):
            return shared[target.removeprefix(_SHARED)]
        return {key: _in_place(item, shared) for key, item in value.items()}
    return [_in_place(item, shared) for item in value] if isinstance(value, list) else value


def _renamed(part: Obj, ours: Obj) -> Obj:
    taken = {**ours}
    names: dict[str, str] = {}
    for name, definition in part["definitions"].items():
        chosen, number = name, 1
        while chosen in taken and taken[chosen] != definition:
            number += 1
            chosen = f"{name}_v{number}"
        taken[chosen] = definition
        names[name] = chosen
    definitions = {names[name]: _refer(item, names) for name, item in part["definitions"].items()}
    return {"paths": _refer(part["paths"], names), "definitions": definitions}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(_PREFIX)
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _refer(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        out = {key: _refer(item, names) for key, item in value.items()}
        if isinstance(value.get("$ref"), str):
            out["$ref"] = _PREFIX + names[value["$ref"].removeprefix(_PREFIX)]
        return out
    return [_refer(item, names) for item in value] if isinstance(value, list) else value
