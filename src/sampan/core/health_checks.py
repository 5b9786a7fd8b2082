"""Named checks of a process, and what is said of them over HTTP.

Job: /healthz, /livez and /readyz, whole or one check of them, and the counts of their results.
Owner: whoever serves it says which checks each path has.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from sampan.core.http.messages import Request, Response
from sampan.core.http.query import query_values

PATHS = ("/healthz", "/livez", "/readyz")
_PLAIN = (
    ("content-type", "text/plain; charset=utf-8"),
    ("cache-control", "no-cache, private"),
)
_TEXT = (*_PLAIN, ("x-content-type-options", "nosniff"))

Check = Callable[[], str]  # what is wrong; empty: nothing


def is_health_path(path: str) -> bool:
    return path.startswith(PATHS) and f"/{path.split('/')[1]}" in PATHS


def nothing_wrong() -> str:
    return ""


class HealthChecks:
    def __init__(self, checks_of: Callable[[str], Mapping[str, Check]]) -> None:
        """`checks_of`: healthz, livez or readyz → its checks, in the order in which they are
        shown."""
        self._checks_of = checks_of
        self._results: Counter[tuple[str, str, str]] = Counter()
        self._last: dict[tuple[str, str], int] = {}

    def reply(self, request: Request) -> Response:
        _, kind, *name = request.path.split("/")
        checks = self._checks_of(kind)
        if name:
            return self._single(kind, "/".join(name), checks)
        asked = query_values(request.query)
        skipped = set(asked.get("exclude", ()))
        lines, failed = [], False
        for title, check in checks.items():
            if title in skipped:
                lines.append(f"[+]{title} excluded: ok")
                continue
            wrong = self._result(kind, title, check)
            failed = failed or bool(wrong)
            lines.append(f"[-]{title} failed: reason withheld" if wrong else f"[+]{title} ok")
        unknown = sorted(skipped - set(checks))
        if unknown:
            listed = ",".join(f'"{item}"' for item in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
        if failed:
            body = "\n".join([*lines, f"{kind} check failed", ""])
            return Response(500, _TEXT, body.encode())
        if "verbose" in asked:
            body = "\n".join([*lines, f"{kind} check passed", ""])
            return Response(200, _TEXT, body.encode())
        return Response(200, _TEXT, b"ok")

    def slis(self) -> str:
        """/metrics/slis: what the checks said, last and in all."""
        lines = [
            "# HELP kubernetes_healthcheck [STABLE] The result of a single health check.",
            "# TYPE kubernetes_healthcheck gauge",
        ]
        for (name, kind), value in sorted(self._last.items()):
            lines.append(f'kubernetes_healthcheck{{name="{name}",type="{kind}"}} {value}')
        lines += [
            "# HELP kubernetes_healthchecks_total [STABLE] The results of all health checks.",
            "# TYPE kubernetes_healthchecks_total counter",
        ]
        for (name, status, kind), count in sorted(self._results.items()):
            labels = f'name="{name}",status="{status}",type="{kind}"'
            lines.append(f"kubernetes_healthchecks_total{{{labels}}} {count}")
        return "\n".join([*lines, ""])

    def _single(self, kind: str, name: str, checks: Mapping[str, Check]) -> Response:
        check = checks.get(name)
        if check is None:
            return Response(404, _TEXT, b"404 page not found\n")
        wrong = self._result(kind, name, check)
        if wrong:
            return Response(500, _TEXT, f"internal server error: {wrong}\n".encode())
        return Response(200, _PLAIN, b"ok")

    def _result(self, kind: str, name: str, check: Check) -> str:
        wrong = check()
        self._results[name, "error" if wrong else "success", kind] += 1
        self._last[name, kind] = 0 if wrong else 1
        return wrong
