"""Local APIServices: one for each group version that this server serves.

Job: create those of built-in groups at the start, those of custom groups as they come and go.
Invariant: an APIService that somebody else made is never changed or removed.
Owner: one task, woken by changes of the kinds and of the APIServices.
"""

import asyncio

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, labels_of, name_of
from sampan.api.resources import API_SERVICES, MEASURED, Resource
from sampan.api.served import served_resources
from sampan.apiserver.registry.api_services import MANAGED
from sampan.apiserver.registry.generic import PLAIN, Stale
from sampan.apiserver.watch.listener import follow
from sampan.apiserver.write.ensure import ensure
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks

log = get_logger(__name__)

RETRY_SECONDS = 1.0
# (priority of the group, priority of the version), as v1.35 has them; custom groups come last.
_PRIORITIES = {
    "": (18000, 1), "apps": (17800, 15), "events.k8s.io": (17750, 15),
    "authentication.k8s.io": (17700, 15), "authorization.k8s.io": (17600, 15),
    "autoscaling": (17500, 15), "batch": (17400, 15), "certificates.k8s.io": (17300, 15),
    "networking.k8s.io": (17200, 15), "policy": (17100, 15),
    "rbac.authorization.k8s.io": (17000, 15), "storage.k8s.io": (16800, 15),
    "apiextensions.k8s.io": (16700, 15), "admissionregistration.k8s.io": (16700, 15),
    "scheduling.k8s.io": (16600, 15), "coordination.k8s.io": (16500, 15),
    "node.k8s.io": (16300, 15), "discovery.k8s.io": (16200, 15), "resource.k8s.io": (16200, 15),
    "flowcontrol.apiserver.k8s.io": (16100, 21), "storagemigration.k8s.io": (15800, 15),
    "metrics.k8s.io": (100, 100),
}  # fmt: skip
_VERSIONS = {
    ("autoscaling", "v2"): 30, ("admissionregistration.k8s.io", "v1beta1"): 12,
    ("admissionregistration.k8s.io", "v1alpha1"): 9, ("networking.k8s.io", "v1beta1"): 9,
    ("resource.k8s.io", "v1"): 21, ("resource.k8s.io", "v1beta2"): 15,
    ("resource.k8s.io", "v1beta1"): 9, ("storage.k8s.io", "v1beta1"): 9,
    ("storage.k8s.io", "v1alpha1"): 1, ("storagemigration.k8s.io", "v1beta1"): 9,
    ("resource.k8s.io", "v1alpha3"): 9,
}  # fmt: skip
_CUSTOM = (1000, 100)


def built_in() -> list[Obj]:
    """Of every group that is always there, but for APIServices themselves. The metrics are there
    until somebody's own server takes their place (docs/decisions/0022)."""
    rows = (*served_resources(), *MEASURED)
    found = {(row.group, row.version): None for row in rows if row.group != _OWN_GROUP}
    services = []
    for group, version in found:
        priority, of_version = _PRIORITIES[group]
        of_version = _VERSIONS.get((group, version), of_version)
        services.append(_service(group, version, (priority, of_version), "onstart"))
    return services


_OWN_GROUP = API_SERVICES.group


def custom(rows: list[Resource]) -> dict[str, Obj]:
    """By name."""
    found = {(row.group, row.version): None for row in rows}
    services = (_service(group, version, _CUSTOM, "true") for group, version in found)
    return {name_of(service): service for service in services}


def _service(group: str, version: str, priorities: tuple[int, int], managed: str) -> Obj:
    spec: Obj = {"group": group} if group else {}
    spec |= {
        "version": version,
        "groupPriorityMinimum": priorities[0],
        "versionPriority": priorities[1],
    }
    metadata = {"name": f"{version}.{group}", "labels": {MANAGED: managed}}
    head = {"apiVersion": API_SERVICES.api_version, "kind": API_SERVICES.kind}
    return {**head, "metadata": metadata, "spec": spec}


class ApiServices:
    def __init__(self, scope: RequestScope) -> None:
        self._scope, self._registry = scope, scope.registry
        self._wake = asyncio.Event()
        self._tasks = Tasks("api-services")
        kind = self._registry.kind(API_SERVICES)
        follow(kind, lambda _before, _now: self.changed(), self.changed)

    def changed(self) -> None:
        self._wake.set()

    async def start(self) -> None:
        self._tasks.supervise("sync", self._run)

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self) -> None:
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._sync()
            except (ApiError, Stale) as error:
                log.warning("APIServices not synced", error=error)
                await self._scope.clock.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _sync(self) -> None:
        wanted = custom(self._registry.kinds.custom())
        items = dict(self._registry.kind(API_SERVICES).items)
        for name, service in wanted.items():
            if name not in items:
                await ensure(self._scope, API_SERVICES, service)
        for name, item in items.items():
            if labels_of(item.obj).get(MANAGED) != "true":
                continue
            if name not in wanted:
                await self._registry.remove(API_SERVICES, item, PLAIN)
            elif item.obj.get("spec") != wanted[name]["spec"]:
                changed = {**item.obj, "spec": wanted[name]["spec"]}
                await self._registry.replace(API_SERVICES, item, changed, PLAIN)
