"""Resources of an aggregated server, in the form of aggregated discovery. Pure.

Job: the body of GET /apis/GROUP/VERSION (an APIResourceList) → entries of an APIGroupDiscovery.
Invariant: nothing of the answer is believed to have the right form: what has not is left out, and
    of very many resources the rest.
"""

from typing import Any

import orjson

from sampan.api.objects import Obj

MOST = 2000


class Unreadable(Exception):
    """The answer is no list of resources."""


def discovered_resources(body: bytes, group: str, version: str) -> list[Obj]:
    """Raises Unreadable."""
    try:
        listed = orjson.loads(body)
    except ValueError as error:
        raise Unreadable("the answer is no JSON") from error
    rows = listed.get("resources") if isinstance(listed, dict) else None
    if not isinstance(rows, list) or listed.get("kind") != "APIResourceList":
        raise Unreadable("the answer is no APIResourceList")
    found: dict[str, Obj] = {}
    for row in rows[:MOST]:
        if isinstance(row, dict) and _text(row, "name"):
            _add(found, row, {"group": group, "version": version})
    return list(found.values())


def _add(found: dict[str, Obj], row: Obj, own: Obj) -> None:
    name, _, subresource = _text(row, "name").partition("/")
    kind = {
        "group": _text(row, "group") or own["group"],
        "version": _text(row, "version") or own["version"],
        "kind": _text(row, "kind"),
    }
    scope = "Namespaced" if row.get("namespaced") is True else "Cluster"
    verbs = _texts(row, "verbs")
    if subresource:
        # As upstream: a subresource without its resource is shown below an empty one.
        empty = {"resource": name, "responseKind": {}, "scope": scope, "singularResource": "",
                 "verbs": []}  # fmt: skip
        entry = {"subresource": subresource, "responseKind": kind, "verbs": verbs}
        found.setdefault(name, empty).setdefault("subresources", []).append(entry)
        return
    out: Obj = {
        "resource": name,
        "responseKind": kind,
        "scope": scope,
        "singularResource": _text(row, "singularName"),
        "verbs": verbs,
    }
    out |= {key: items for key in ("shortNames", "categories") if (items := _texts(row, key))}
    known = found.get(name, {})
    found[name] = out | {key: known[key] for key in ("subresources",) if key in known}


def _text(row: Obj, key: str) -> str:
    value: Any = row.get(key)
    return value if isinstance(value, str) else ""


def _texts(row: Obj, key: str) -> list[str]:
    value: Any = row.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
