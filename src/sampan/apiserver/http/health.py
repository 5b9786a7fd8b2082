"""healthz, livez, readyz and version.

Job: /healthz, /livez, /readyz with named checks, /metrics/slis, and /version.
Owner: the server says when it has started and when it stops; readyz fails first.
"""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import field

from sampan.api import features
from sampan.api.feature_gates import number_of
from sampan.api.objects import Obj
from sampan.api.zpages.zpages import GO_VERSION
from sampan.core.fast_dataclass import dataclass
from sampan.core.health_checks import Check, HealthChecks, is_health_path, nothing_wrong
from sampan.core.http.messages import Request, Response

_STORAGE = "poststarthook/storage-readiness"
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
    _STORAGE,
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
    _answers: HealthChecks = field(init=False)

    def __post_init__(self) -> None:
        self._answers = HealthChecks(self._checks)

    def is_path(self, path: str) -> bool:
        return is_health_path(path)

    def reply(self, request: Request) -> Response:
        return self._answers.reply(request)

    def paths(self) -> Iterator[str]:
        """What can be asked, each check by itself among it."""
        for kind in ("healthz", "livez", "readyz"):
            yield f"/{kind}"
            for name in self._checks(kind):
                yield f"/{kind}/{name}"

    def slis(self) -> str:
        """/metrics/slis: what the checks said, last and in all."""
        return self._answers.slis()

    def _checks(self, kind: str) -> dict[str, Check]:
        """By upstream's names, in its order."""
        ready = kind == "readyz"
        own = {
            name: check
            for name, check in self.checks.items()
            if ready or name not in ("informer-sync", "etcd-readiness")
        }
        found = {"ping": nothing_wrong, "log": nothing_wrong, **own}
        for hook in _HOOKS:
            if hook != _STORAGE or features.enabled("WatchCacheInitializationPostStartHook"):
                found[hook] = self._begin
        if ready:
            found["shutdown"] = self._staying
        return found

    def _begin(self) -> str:
        return "" if self.started else "not finished"

    def _staying(self) -> str:
        return "process is shutting down" if self.stopping else ""


def version() -> Obj:
    release = features.release()
    major, minor = release.minor.split(".")
    shown = number_of(release.shown)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": str(shown),
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(shown - 1),
        "gitVersion": release.git_version,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": GO_VERSION,
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{machine}",
    }
