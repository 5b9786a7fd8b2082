"""What of an answer can be compared: all but what differs by nature.

Job: uids, times, revisions, ages, allocated addresses → one word each; Go's map order → sets; the
    part of a large answer that is kept.
Invariant: what is masked in a recording is masked in what is compared with it, and nothing else.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import yaml

from sampan.api.objects import Obj

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?!07)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_REVISION = re.compile(r'((?:"resourceVersion"|\\"resourceVersion\\"): ?\\?")\d+')
_AGE = re.compile(r"^\d+[smhdy](?:\d+[smhd])?$")
_SERVICE_ADDRESS = re.compile(r"10\.96\.\d+\.\d+")  # of the range that both are started with
_NODE_PORT = re.compile(r":3\d{4}/")
_MADE = 'is invalid: patch: Invalid value: "'
_SCHEME = re.compile(r' in scheme "[^"]*"')  # the original names a line of its own source
_CURRENT = re.compile(r"(Too large resource version: \d+, current: )\d+")
_OLD = re.compile(r"(too old resource version: \d+ )\(\d+\)")
_IN_RECORD = re.compile(r"(ResourceVersion in (?:record \(|object meta: ))\d+")
_CREDENTIAL = re.compile(r"X509SHA256=[0-9a-f]{64}")
_PROJECTED = re.compile(r"kube-api-access-[a-z0-9]{5}")
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_PEM = re.compile(r"-----BEGIN [A-Z ]+-----[^-]*(?:-----END [A-Z ]+-----\n?)?")
_ALLOCATED = frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"})
_TIMES = frozenset({"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time"})


def without_types(body: Any) -> Any:
    """A list of a built-in kind: its items say what they are here, and there they do not."""
    items = (
        body if isinstance(body, list) else body.get("items") if isinstance(body, dict) else None
    )
    if not isinstance(items, list):
        return body
    plain = [
        {key: value for key, value in entry.items() if key not in ("apiVersion", "kind")}
        for entry in items
    ]
    return plain if isinstance(body, list) else {**body, "items": plain}


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


def comparable_answer(answer: list[Any]) -> list[Any]:
    code, body, warnings, *headers = answer
    return [*comparable(code, body, warnings), *headers]


def comparable(code: int, body: Any, warnings: list[str]) -> Any:
    """Causes and lists of groups as sets: a Go map has no order, and the original tells what is
    wrong with metadata once for every part of it that looked."""
    if isinstance(body, dict) and body.get("kind") == "Status":
        body = _with_ordered_value(body)
        causes = (body.get("details") or {}).get("causes")
        if causes:
            ordered = sorted({json.dumps(cause, sort_keys=True) for cause in causes})
            body["details"] = {**body["details"], "causes": ordered}
            if len(ordered) > 1:
                body["message"] = ""
    if isinstance(body, dict) and body.get("kind") == "APIResourceList":
        body = {
            **body,
            "resources": sorted(body["resources"], key=lambda resource: str(resource["name"])),
        }
    if isinstance(body, str) and re.search(r"^apiVersion:", body, re.MULTILINE):
        with suppress(yaml.YAMLError):  # a part of it is none
            body = mask_allocated(mask_times(yaml.safe_load(body), keep_entries=True), "")
    return [code, body, sorted(warnings)]


def _with_ordered_value(body: Obj) -> Obj:
    """A patch that makes no object is refused with what it would have made: by keys here, there
    sometimes in the order of a Go struct."""
    message = _SCHEME.sub("", str(body.get("message") or ""))
    start = message.find(_MADE)
    if start < 0:
        return {**body, "message": message} if message else dict(body)
    try:
        made, end = json.JSONDecoder().raw_decode(message, start + len(_MADE) - 1)
        text = json.dumps(json.loads(made), sort_keys=True)
    except ValueError:
        return dict(body)
    shown = message[:start] + _MADE + text + message[end:]
    return {**body, "message": shown, "details": {"as": "in the message"}}


def mask_times(value: Any, keep_entries: bool) -> Any:
    if isinstance(value, dict) and isinstance(value.get("cells"), list):
        cells = [_masked_cell(cell) if isinstance(cell, str) else cell for cell in value["cells"]]
        value = {**value, "cells": cells}
    if isinstance(value, dict):
        return {
            key: _masked_field(key, entry, keep_entries)
            for key, entry in value.items()
            if key != "managedFields" or keep_entries
        }
    if isinstance(value, list):
        return [mask_times(entry, keep_entries) for entry in value]
    return _masked_text(value) if isinstance(value, str) else value


def _masked_cell(cell: str) -> str:
    return _NODE_PORT.sub(":PORT/", _SERVICE_ADDRESS.sub("ADDRESS", _AGE.sub("AGE", cell)))


def _masked_field(key: str, value: Any, keep_entries: bool) -> Any:
    if isinstance(value, str) and value:
        if key == "uid":
            return "UID"
        if key in _TIMES:
            return "TIME"
        if key == "resourceVersion":
            return "N"
        if key == "continue":
            return "CONTINUE"
    return mask_times(value, keep_entries)


def _masked_text(text: str) -> str:
    text = _REVISION.sub(r"\1N", _UID.sub("UID", _TIME.sub("TIME", text)))
    text = _CURRENT.sub(r"\1N", _OLD.sub(r"\1(N)", _IN_RECORD.sub(r"\1N", text)))
    text = _CREDENTIAL.sub("X509SHA256=*", text)
    return _PEM.sub("PEM", _TOKEN.sub("JWT", _PROJECTED.sub("kube-api-access-*", text)))


def mask_allocated(value: Any, asked: str) -> Any:
    """What the server chose: addresses, ports and generated names that `asked`, the text of the
    request, does not have."""
    if isinstance(value, list):
        return [mask_allocated(item, asked) for item in value]
    if not isinstance(value, dict):
        return value
    found = {
        key: "*"
        if key in _ALLOCATED and item and item != "None" and json.dumps(item) not in asked
        else mask_allocated(item, asked)
        for key, item in value.items()
    }
    start, name = found.get("generateName"), found.get("name")
    if start and isinstance(name, str) and name.startswith(str(start)) and name not in asked:
        found["name"] = f"{start}*"
    return found


def without_random(value: Any) -> Any:
    return json.loads(re.sub(r"((?:gen|Gen|here)[-_])[a-z0-9]{5}", r"\1RANDOM", json.dumps(value)))


def reduce_answer(rule: str, body: Any) -> Any:
    """The part of a large answer that was kept."""
    kind, _, name = rule.partition(":")
    if not isinstance(body, dict):
        return body
    return _REDUCTIONS[kind](body, name)


def _one_group(body: Obj, name: str) -> Any:
    found = [item for item in body.get("items") or () if item["metadata"].get("name") == name]
    return _named_group(found[0]) if found else None


def _schemas_called(body: Obj, name: str) -> Any:
    schemas = (body.get("components") or {}).get("schemas") or {}
    wanted = (name, f"{name}List")
    return {key: schema for key, schema in schemas.items() if key.split(".")[-1] in wanted}


def _items_of_group(body: Obj, name: str) -> Any:
    return [item for item in body.get("items") or () if item["spec"].get("group") == name]


def _starting_with(schemas: Obj, name: str) -> Any:
    return {key: schema for key, schema in schemas.items() if key.startswith(name)}


_REDUCTIONS: dict[str, Callable[[Obj, str], Any]] = {
    "groups": lambda body, name: [
        group for group in body.get("groups") or () if group["name"] == name
    ],
    "aggregated": _one_group,
    "aggregatedany": _one_group,
    "openapi3": _schemas_called,
    "openapi3paths": lambda body, _: {
        path: sorted(item) for path, item in (body.get("paths") or {}).items()
    },
    "openapi2": lambda body, name: _starting_with(body.get("definitions") or {}, name),
    "group": _items_of_group,
    "field": lambda body, name: body.get(name),
    "keys": lambda body, _: sorted(body.get("data") or {}),
}


def _named_group(group: Obj) -> Obj:
    return {**group, "metadata": {"name": group["metadata"]["name"]}}
