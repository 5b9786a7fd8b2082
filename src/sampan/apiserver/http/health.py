"""Is the server alive, is it ready, which version is it?

Job: /healthz, /livez, /readyz with named checks, and /version.
Owner: the server says when it has started and when it stops; readyz fails first.
"""

import platform
from collections.abc import Callable, Mapping
from dataclasses import field
from urllib.parse import parse_qsl

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.http import Request, Response
from sampan.version import GIT_VERSION

PATHS = ("/healthz", "/livez", "/readyz")
_TEXT = (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff"))

Check = Callable[[], str]  # what is wrong; empty: nothing


@dataclass(slots=True)
class Health:
    """`checks` say whether it lives; `ready` adds what must be so before it takes requests."""

    checks: Mapping[str, Check]
    started: bool = False
    stopping: bool = False
    _ping: Mapping[str, Check] = field(default_factory=lambda: {"ping": lambda: ""})

    def is_path(self, path: str) -> bool:
        return path.startswith(PATHS) and f"/{path.split('/')[1]}" in PATHS

    def reply(self, request: Request) -> Response:
        _, kind, *name = request.path.split("/")
        checks = self._checks(kind)
        if name and name != [""]:
            check = checks.get("/".join(name))
            if check is None:
                return Response(404, _TEXT, b"404 page not found")
            checks = {"/".join(name): check}
        asked = parse_qsl(request.query, keep_blank_values=True)
        skipped = {value for key, value in asked if key == "exclude"}
        lines, failed = [], False
        for title, check in checks.items():
            wrong = "" if title in skipped else check()
            failed = failed or bool(wrong)
            said = "excluded: ok" if title in skipped else "ok"
            lines.append(f"[-]{title} failed: {wrong}" if wrong else f"[+]{title} {said}")
        if failed:
            body = "\n".join([*lines, f"{kind} check failed", ""])
            return Response(500, _TEXT, body.encode())
        if any(key == "verbose" for key, _ in asked):
            body = "\n".join([*lines, f"{kind} check passed", ""])
            return Response(200, _TEXT, body.encode())
        return Response(200, _TEXT, b"ok")

    def _checks(self, kind: str) -> dict[str, Check]:
        found = {**self._ping, **self.checks}
        started = {"poststarthook/bootstrap": lambda: "" if self.started else "not finished"}
        if kind == "readyz":
            stopping = {"shutdown": lambda: "process is shutting down" if self.stopping else ""}
            return {**found, **started, **stopping}
        return {**found, **started}


def version() -> Obj:
    number, _, _ = GIT_VERSION.partition("+")
    major, minor, *_ = number.removeprefix("v").split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": f"none (python{platform.python_version()})",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{machine}",
    }
