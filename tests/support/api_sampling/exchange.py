"""One step of a unit, asked of one server.

Job: a step (method, path, query, headers, body; what earlier answers gave stands in `$…$`) → its
    answer, masked, as it is written down and compared.
Invariant: the same steps make the same requests, whichever server is asked.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from sampan.api.objects import Obj
from tests.support.api_sampling.masks import (
    comparable_answer,
    mask_allocated,
    mask_times,
    reduce_answer,
    without_types,
)
from tests.support.api_sampling.servers import Answer, Server

AGENT = "golden/1.0"
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
_PLAIN_LISTS = ("/customresourcedefinitions", "/apiservices")


class Exchange:
    """The steps of one unit, one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._saved: dict[str, Obj] = {}

    async def answer(self, step: Obj, wanted: Any = None) -> list[Any]:
        """Code, body, warnings and, where the step wants some, headers. `wanted`: what a step that
        polls waits for; without it, until its code or condition is there."""
        tries = int(step.get("poll") or 0) * 4
        while True:
            sent = await self._send(step)
            body = _body_of(sent)
            found = self._seen(step, sent, body)
            if tries <= 0 or _is_done(step, sent.code, body, found, wanted):
                return found
            tries -= 1
            await asyncio.sleep(0.25)

    def _seen(self, step: Obj, answer: Answer, body: Any) -> list[Any]:
        if step.get("save") and isinstance(body, dict):
            self._saved[step["save"]] = body
        if "reduce" in step:
            body = reduce_answer(step["reduce"], body)
        if any(part in step["path"] for part in _PLAIN_LISTS):
            body = without_types(body)
        body = mask_times(body, keep_entries=bool(step.get("managed")))
        body = mask_allocated(body, json.dumps(step.get("body")))
        warnings = texts_of_warnings([answer.headers.get("warning", "")])
        shown = (
            [{name: answer.headers.get(name) for name in step["show"]}] if "show" in step else []
        )
        return [answer.code, body, warnings, *shown]

    async def _send(self, step: Obj) -> Answer:
        headers = {"user-agent": AGENT}
        for name in ("content-type", "accept"):
            if name in step:
                headers[name] = step[name]
        headers |= step.get("headers") or {}
        body = step.get("body")
        data = b"" if body is None else self._fill(body, await self._revision(step))
        query = step.get("query")
        if isinstance(query, dict):
            query = urlencode({key: self._filled_text(str(item)) for key, item in query.items()})
        path = self._filled_text(step["path"])
        target = path if query is None else f"{path}?{self._filled_text(query)}"
        return await self._server.send(step["method"], target, headers, data)

    async def _revision(self, step: Obj) -> str:
        if "$rv$" not in json.dumps(step.get("body")):
            return ""
        asked = {"method": "GET", "path": step["path"].split("/status")[0]}
        found = _body_of(await self._send(asked))
        return str((found.get("metadata") or {}).get("resourceVersion") or "")

    def _fill(self, body: Any, revision: str) -> bytes:
        text = body if isinstance(body, str) else _compact(body)
        return self._filled_text(text.replace("$rv$", revision)).encode()

    def _filled_text(self, text: str) -> str:
        if "$" not in text:
            return text
        for name, body in self._saved.items():
            meta = body.get("metadata") or {}
            for field in ("continue", "resourceVersion", "uid"):
                text = text.replace(f"${name}.{field}$", str(meta.get(field) or ""))
            text = text.replace(f"${name}$", str(meta.get("name") or ""))
        return text


def _compact(body: Any) -> str:
    """As clients of Go send it."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def texts_of_warnings(headers: Sequence[str]) -> list[str]:
    return [text for header in headers for text in _WARNING.findall(header)]


def _is_done(step: Obj, code: int, body: Any, found: list[Any], wanted: Any) -> bool:
    if "until" in step:
        return bool(code == step["until"])
    if "condition" in step:
        kind, _, status = step["condition"].partition("=")
        shown = body.get("status") if isinstance(body, dict) else None
        conditions = shown.get("conditions") or () if isinstance(shown, dict) else ()
        return any(item["type"] == kind and item["status"] == status for item in conditions)
    return wanted is None or comparable_answer(found)[:2] == wanted[:2]


def _body_of(answer: Answer) -> Any:
    if answer.body.startswith(b"k8s\0"):
        return "<protobuf>"
    try:
        found = json.loads(answer.body)
    except ValueError:
        pass
    else:
        is_event = isinstance(found, dict) and found.keys() == {"type", "object"}
        return [found] if is_event else found
    lines = answer.body.splitlines()
    try:
        return [json.loads(line) for line in lines] if lines else ""
    except ValueError:
        return answer.body.decode(errors="replace")
