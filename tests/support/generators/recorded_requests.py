"""Requests and answers that were recorded at an original, sent again.

Job: send the steps of one unit in order, mask what differs by nature, say which answers differ.
Invariant: what is masked in the recording is masked here, and nothing else is.
"""

import asyncio
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request, Response, Stream
from tests.support.generators.api_requests import Api, client_certificate

AGENT = "golden/1.0"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?!07)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_REVISION = re.compile(r'((?:"resourceVersion"|\\"resourceVersion\\"): ?\\?")\d+')
_AGE = re.compile(r"^\d+[smhdy](?:\d+[smhd])?$")
_MADE = 'is invalid: patch: Invalid value: "'
_SCHEME = re.compile(r' in scheme "[^"]*"')  # the original names a line of its own source
_TIMES = frozenset({"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time"})


@dataclass(frozen=True, slots=True)
class Difference:
    unit: str
    step: str
    recorded: str
    answered: str

    def __str__(self) -> str:
        return f"{self.unit}/{self.step}\n  a {self.recorded}\n  b {self.answered}"


def recordings(path: Path) -> dict[str, list[Obj]]:
    """By unit, each in its order."""
    units: dict[str, list[Obj]] = {}
    with gzip.open(path, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            units.setdefault(record["unit"], []).append(record)
    return units


class Replay:
    """One unit against one server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._saved: dict[str, Obj] = {}

    async def differences(self, records: list[Obj]) -> list[Difference]:
        found = []
        for record in records:
            different = await self._step(record)
            if different is not None:
                found.append(different)
        return found

    async def _step(self, record: Obj) -> Difference | None:
        step = record["step"]
        if step.get("pause"):
            await asyncio.sleep(step["pause"])
        answer = await self._answer(step, record)
        recorded = comparable(record["code"], record["body"], record["warnings"])
        if step.get("save") and isinstance(answer[1], dict):
            self._saved[step["save"]] = answer[1]
        if step["method"] != "GET" and "customresourcedefinitions" in step["path"]:
            await asyncio.sleep(1)  # as the recorder: until the write has taken effect
        masked = self._mask(step, answer)
        if record.get("unstable"):
            recorded, masked = _without_random(recorded), _without_random(masked)
        if masked == recorded:
            return None
        return Difference(record["unit"], step["name"], _text(recorded), _text(masked))

    async def _answer(self, step: Obj, record: Obj) -> tuple[int, Any, list[str]]:
        tries = int(step.get("poll") or 0) * 4
        while True:
            code, body, warnings = await self._send(step)
            done = self._is_done(step, code, body, record)
            if done or tries <= 0:
                return code, body, warnings
            tries -= 1
            await asyncio.sleep(0.25)

    def _is_done(self, step: Obj, code: int, body: Any, record: Obj) -> bool:
        if "until" in step:
            return bool(code == step["until"])
        if "condition" in step:
            kind, _, wanted = step["condition"].partition("=")
            status = body.get("status") if isinstance(body, dict) else None
            conditions = status.get("conditions") or () if isinstance(status, dict) else ()
            return any(
                condition["type"] == kind and condition["status"] == wanted
                for condition in conditions
            )
        return "poll" not in step or self._mask(step, (code, body, [])) == comparable(
            record["code"], record["body"], []
        )

    async def _send(self, step: Obj) -> tuple[int, Any, list[str]]:
        headers = {"user-agent": AGENT}
        if "content-type" in step:
            headers["content-type"] = step["content-type"]
        if "accept" in step:
            headers["accept"] = step["accept"]
        body = step.get("body")
        data = b"" if body is None else self._fill(body, await self._revision(step))
        query = {
            key: self._filled_text(str(entry)) for key, entry in (step.get("query") or {}).items()
        }
        certificate = client_certificate("admin", "system:masters")
        path = self._filled_text(step["path"])
        request = Request(
            step["method"], path, urlencode(query), headers, data, peer_certificate=certificate
        )
        reply = await self._api.server.handle_http(request)
        if isinstance(reply, Stream):
            text = b"".join([chunk async for chunk in reply.chunks])
            return reply.status, [json.loads(line) for line in text.splitlines()], []
        assert isinstance(reply, Response), reply
        warnings = [value for key, value in reply.headers if key == "warning"]
        is_text = not reply.whole().startswith(b"k8s\0")
        found = _parse(reply.whole()) if is_text else "<protobuf>"  # as the recorder noted it
        return reply.status, found, warnings

    async def _revision(self, step: Obj) -> str:
        if "$rv$" not in json.dumps(step.get("body")):
            return ""
        _, body, _ = await self._send({"method": "GET", "path": step["path"].split("/status")[0]})
        return str(body["metadata"]["resourceVersion"])

    def _fill(self, body: Any, revision: str) -> bytes:
        text = body if isinstance(body, str) else json.dumps(body)
        return self._filled_text(text.replace("$rv$", revision)).encode()

    def _filled_text(self, text: str) -> str:
        for name, body in self._saved.items():
            token = (body.get("metadata") or {}).get("continue") or ""
            text = text.replace(f"${name}.continue$", token)
            text = text.replace(f"${name}$", str((body.get("metadata") or {}).get("name") or ""))
        return text

    def _mask(self, step: Obj, answer: tuple[int, Any, list[str]]) -> Any:
        code, body, warnings = answer
        if "reduce" in step:
            body = reduce_answer(step["reduce"], body)
        if "/customresourcedefinitions" in step["path"] or "/apiservices" in step["path"]:
            body = _with_type(body)
        return comparable(code, mask_times(body, keep_entries=bool(step.get("managed"))), warnings)


def _with_type(body: Any) -> Any:
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
    if isinstance(body, str) and body.startswith("apiVersion:"):
        body = mask_times(yaml.safe_load(body), keep_entries=True)
    return [code, body, sorted(warnings)]


def _with_ordered_value(body: Obj) -> Obj:
    """A patch that makes no object is refused with what it would have made: by keys here, there
    sometimes in the order of a Go struct."""
    message = _SCHEME.sub("", str(body.get("message") or ""))
    start = message.find(_MADE)
    if start < 0:
        return dict(body)
    try:
        made, end = json.JSONDecoder().raw_decode(message, start + len(_MADE) - 1)
        text = json.dumps(json.loads(made), sort_keys=True)
    except ValueError:
        return dict(body)
    shown = message[:start] + _MADE + text + message[end:]
    return {**body, "message": shown, "details": {"as": "in the message"}}


def mask_times(value: Any, keep_entries: bool) -> Any:
    if isinstance(value, dict) and isinstance(value.get("cells"), list):
        cells = [
            _AGE.sub("AGE", cell) if isinstance(cell, str) else cell for cell in value["cells"]
        ]
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
    return _REVISION.sub(r"\1N", _UID.sub("UID", _TIME.sub("TIME", text)))


def _without_random(value: Any) -> Any:
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
    "keys": lambda body, _: sorted(body.get("data") or {}),
}


def _named_group(group: Obj) -> Obj:
    return {**group, "metadata": {"name": group["metadata"]["name"]}}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
