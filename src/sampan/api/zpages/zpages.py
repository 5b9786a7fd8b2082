"""/statusz and /flagz: what a component is, since when it runs, and with which flags.

Job: path and Accept → the answer, as text or as a Statusz or Flagz of config.k8s.io.
Invariant: a path is served only where its gate is on (ComponentStatusz, ComponentFlagz), and
    /flagz only by who has flags.
Invariant: nothing but text is given to who does not name the kind.
"""

import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime

from sampan.api import features
from sampan.api.errors import NotAcceptable
from sampan.api.objects import Obj, time_text
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.accept import Clause, is_pretty, parse_accept
from sampan.core.http.messages import Request, Response
from sampan.core.http.written_forms import JSON, YAML, written

STATUSZ, FLAGZ = "/statusz", "/flagz"
GO_VERSION = f"none (python{platform.python_version()})"
_GATES = {STATUSZ: "ComponentStatusz", FLAGZ: "ComponentFlagz"}
_TEXT, _PROTOBUF = "text/plain", "application/vnd.kubernetes.protobuf"
_GROUP, _ALPHA, _BETA = "config.k8s.io", "v1alpha1", "v1beta1"
_NOT_DEBUGGING = frozenset({"/apis", "/api", "/openid", "/openapi", "/.well-known"})
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)


def zpage_paths(has_flags: bool) -> list[str]:
    found = [STATUSZ] if features.enabled("ComponentStatusz") else []
    return [*found, FLAGZ] if has_flags and features.enabled("ComponentFlagz") else found


@dataclass(frozen=True, slots=True)
class ZPages:
    """Of one component."""

    name: str
    started: float
    flags: Mapping[str, str] = field(default_factory=dict)  # empty: nobody knows them
    paths: Callable[[], Iterable[str]] = tuple  # what it serves

    def reply(self, request: Request, now: float) -> Response | None:
        """None: it is no such path. Raises NotAcceptable."""
        path = request.path
        if path not in zpage_paths(bool(self.flags)):
            return None
        media, version = _wanted(path, request.headers.get("accept", "").strip())
        if media == _TEXT:
            text = self._status_text(now) if path == STATUSZ else self._flags_text()
            return Response(200, [("content-type", "text/plain; charset=utf-8")], text.encode())
        kind = _kind(path)
        headers = [("content-type", f"{media};g={_GROUP};v={version};as={kind}")]
        if version == _ALPHA and _is_beta(path):
            told = f"This version of the {path[1:]} endpoint is deprecated."
            headers.append(("warning", f'299 - "{told} Please use a newer version."'))
        head = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": self.name}}
        rest = self._status(now) if path == STATUSZ else {"flags": dict(sorted(self.flags.items()))}
        pretty = is_pretty(request.query, request.headers.get("user-agent", ""))
        return Response(200, headers, written({**head, **rest}, media, pretty=pretty))

    def _status(self, now: float) -> Obj:
        release = features.release()
        return {
            "startTime": time_text(self.started),
            "uptimeSeconds": max(0, math.floor(now - self.started)),
            "goVersion": GO_VERSION,
            "binaryVersion": release.git_version.removeprefix("v"),
            "emulationVersion": release.shown,
            "paths": sorted(_first_parts(self.paths())),
        }

    def _status_text(self, now: float) -> str:
        status = self._status(now)
        since = datetime.fromtimestamp(self.started, UTC).strftime("%a %b %e %H:%M:%S UTC %Y")
        seconds = status["uptimeSeconds"]
        up = f"{seconds // 3600} hr {seconds // 60 % 60:02} min {seconds % 60:02} sec"
        rows = (
            ("Started", since), ("Up", up), ("Go version", status["goVersion"]),
            ("Binary version", status["binaryVersion"]),
            ("Emulation version", status["emulationVersion"]),
            ("Paths", " ".join(status["paths"])),
        )  # fmt: skip
        told = "".join(f"{name}: {value}\n" for name, value in rows)
        return f"\n{self.name} statusz\n{_WARNING}\n\n{told}"

    def _flags_text(self) -> str:
        rows = "".join(f"{name}={value}\n" for name, value in sorted(self.flags.items()))
        return f"\n{self.name} flagz\n{_WARNING}\n{rows}"


def _kind(path: str) -> str:
    return path[1:].capitalize()


def _is_beta(path: str) -> bool:
    stage = features.known()[_GATES[path]].stage
    return stage is not None and stage.name != "Alpha"


def _wanted(path: str, accept: str) -> tuple[str, str]:
    """Media type, and version where it is an object. Raises NotAcceptable."""
    if not accept:
        return _TEXT, ""
    versions = (_ALPHA, _BETA) if _is_beta(path) else (_ALPHA,)
    for clause in parse_accept(accept):
        found = next(_given(clause, _kind(path), versions), None)
        if found is not None:
            return found
    offered = (JSON, YAML, _TEXT) if _is_beta(path) else (JSON, YAML, _PROTOBUF, _TEXT)
    raise NotAcceptable(f"only the following media types are accepted: {', '.join(offered)}")


def _given(clause: Clause, kind: str, versions: Iterable[str]) -> Iterator[tuple[str, str]]:
    asked = clause.parameters
    named = tuple(asked.get(key, "") for key in ("g", "v", "as"))
    if named[:1] + named[2:] == (_GROUP, kind) and named[1] in versions:
        for media in (JSON, YAML):
            if clause.matches(*media.split("/")):
                yield media, named[1]
    if not any(key in asked for key in ("g", "v", "as")) and clause.matches("text", "plain"):
        yield _TEXT, ""


def _first_parts(paths: Iterable[str]) -> set[str]:
    firsts = {"/" + path.split("/")[1] for path in paths if path.strip("/")}
    return firsts - _NOT_DEBUGGING
