"""Is the server alive, is it ready, which version is it?

Job: /healthz, /livez, /readyz with named checks, /metrics/slis, and /version.
Owner: the server says when it has started and when it stops; readyz fails first.
"""

import platform
from collections import Counter
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
# What has to be done once before requests are taken: here all of it is one start.
_HOOKS = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)


@dataclass(slots=True)
class Health:
    """`checks` say whether it lives; `ready` adds what must be so before it takes requests."""

    checks: Mapping[str, Check]
    started: bool = False
    stopping: bool = False
    _results: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _last: dict[tuple[str, str], int] = field(default_factory=dict)

    def is_path(self, path: str) -> bool:
        return path.startswith(PATHS) and f"/{path.split('/')[1]}" in PATHS

    def reply(self, request: Request) -> Response:
        _, kind, *name = request.path.split("/")
        checks = self._checks(kind)
        if name and name != [""]:
            return self._single(kind, "/".join(name), checks)
        asked = parse_qsl(request.query, keep_blank_values=True)
        skipped = {value for key, value in asked if key == "exclude"}
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
        if any(key == "verbose" for key, _ in asked):
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
            return Response(404, _TEXT, b"404 page not found")
        wrong = self._result(kind, name, check)
        if wrong:
            return Response(500, _TEXT, f"internal server error: {wrong}\n".encode())
        return Response(200, _TEXT, b"ok")

    def _result(self, kind: str, name: str, check: Check) -> str:
        wrong = check()
        self._results[name, "error" if wrong else "success", kind] += 1
        self._last[name, kind] = 0 if wrong else 1
        return wrong

    def _checks(self, kind: str) -> dict[str, Check]:
        """By upstream's names, in its order."""
        ready = kind == "readyz"
        own = {
            name: check
            for name, check in self.checks.items()
            if ready or name not in ("informer-sync", "etcd-readiness")
        }
        found = {"ping": _good, "log": _good, **own}
        for hook in _HOOKS:
            found[hook] = self._begin
        if ready:
            found["shutdown"] = self._staying
        return found

    def _begin(self) -> str:
        return "" if self.started else "not finished"

    def _staying(self) -> str:
        return "process is shutting down" if self.stopping else ""


def _good() -> str:
    return ""


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
