"""APIService availability checks: asks each server, writes the Available condition.

Job: ask each for its discovery when something of it changes and twice a minute; write the
    condition Available; have its documents read (aggregation/foreign_documents.py).
Invariant: a server that hangs holds up no other's check (of WORKERS at a time).
Owner: of the conditions of APIServices.
"""

from sampan.api.calls import Item
from sampan.api.errors import ApiError
from sampan.api.objects import Obj, labels_of, name_of, namespace_of, spec_of
from sampan.api.resources import API_SERVICES, ENDPOINT_SLICES, SERVICES
from sampan.api.rules.conditions import with_condition
from sampan.apiserver.aggregation.asking import TooLarge, ask
from sampan.apiserver.aggregation.availability import PASSED, missing_backend, unavailable
from sampan.apiserver.aggregation.foreign_documents import ForeignDocuments
from sampan.apiserver.aggregation.servers import AggregatedServer, AggregatedServers
from sampan.apiserver.outside.webhook_client import CallFailed
from sampan.apiserver.registry.api_services import LOCAL
from sampan.apiserver.registry.generic import PLAIN, Stale
from sampan.apiserver.watch.listener import follow
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.backoff import Backoff
from sampan.core.http.errors import HttpError
from sampan.core.http.failure_words import failure_words
from sampan.core.http.origin import Origin, Target
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, all_of
from sampan.core.workqueue import WorkQueue

log = get_logger(__name__)

WORKERS = 10
EVERY_SECONDS = 30.0
ATTEMPTS = 5  # endpoints that are asked at once
_OF_SERVICE = "kubernetes.io/service-name"


class Checks:
    def __init__(self, scope: RequestScope, servers: AggregatedServers, metrics: Metrics) -> None:
        self._scope, self._registry, self._servers = scope, scope.registry, servers
        self.documents = ForeignDocuments(servers)
        self._queue: WorkQueue[str] = WorkQueue(Backoff(0.5, EVERY_SECONDS))
        self._tasks = Tasks("api-service-checks")
        self._unavailable = metrics.gauge(
            "aggregator_unavailable_apiservice",
            "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
            ("name",),
        )
        self._failures = metrics.counter(
            "aggregator_unavailable_apiservice_total",
            "Counter of APIServices which are marked as unavailable broken down by APIService "
            "name and reason.",
            ("name", "reason"),
        )
        servers.when_changed(self._changed)
        for kind in (SERVICES, ENDPOINT_SLICES):
            follow(self._registry.kind(kind), self._backend_changed, self._all)

    def start(self) -> None:
        self._all()
        for number in range(WORKERS):
            self._tasks.supervise(f"worker {number}", self._work)

    async def stop(self) -> None:
        self._queue.close()
        await self._tasks.stop()

    # What is told

    def _changed(self, name: str) -> None:
        self.documents.forget_others()
        self._queue.add(name)

    def _backend_changed(self, before: Item | None, now: Item | None) -> None:
        if not self._servers.by_version:
            return
        changed = now or before
        assert changed is not None
        obj = changed.obj
        where = (namespace_of(obj), labels_of(obj).get(_OF_SERVICE) or name_of(obj))
        for server in self._servers.by_version.values():
            if (server.service.get("namespace"), server.service.get("name")) == where:
                self._queue.add(server.name)

    def _all(self) -> None:
        for name in self._registry.kind(API_SERVICES).items:
            self._queue.add(name)

    # The tasks

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            try:
                await self._sync(name)
            except (ApiError, Stale) as error:
                log.warning("APIService availability was not checked", name=name, error=error)
                self._queue.retry(name)
            finally:
                self._queue.done(name)

    async def _sync(self, name: str) -> None:
        item = self._registry.kind(API_SERVICES).items.get(name)
        if item is None:
            self._queue.forget(name)
            return
        if spec_of(item.obj).get("service") is None:
            await self._write(item, LOCAL)
            return
        server = self._server(name)
        if server is None:
            return  # it is gone by now
        self._servers.follow_certificate()
        condition = await self._judge(server)
        passed = condition["status"] == "True"
        # What it serves is known before it is said to be there.
        changed = passed and await self.documents.learn_resources(server)
        self._unavailable.set(0.0 if passed else 1.0, name)
        await self._write(item, condition)
        is_known = not passed or await self.documents.learn_openapi(server, changed)
        if not is_known or condition["reason"] == "FailedDiscoveryCheck":
            self._queue.retry(name)
        else:
            self._queue.forget(name)
            self._queue.add_after(name, EVERY_SECONDS)

    def _server(self, name: str) -> AggregatedServer | None:
        servers = self._servers.by_version.values()
        return next((server for server in servers if server.name == name), None)

    async def _judge(self, server: AggregatedServer) -> Obj:
        reference = server.service
        namespace, service_name = reference.get("namespace") or "", reference.get("name") or ""
        slices = [
            item
            for item in self._registry.find_in(ENDPOINT_SLICES, namespace)
            if labels_of(item).get(_OF_SERVICE) == service_name
        ]
        backend = self._registry.find(SERVICES, namespace, service_name)
        missing = missing_backend(reference, backend, slices)
        if missing is not None:
            self.documents.forget(server)
            return missing
        failure = await self._ask(server)
        if failure:
            self.documents.forget(server)
            return unavailable("FailedDiscoveryCheck", failure)
        return PASSED

    async def _ask(self, server: AggregatedServer) -> str:
        """Several endpoints at once; one that answers is enough. Empty, or why none does."""
        try:
            origins = self._servers.origins(server.service)[:ATTEMPTS]
        except CallFailed as error:
            return str(error)
        answers = await all_of(self._ask_one(Target(origin, server.path)) for origin in origins)
        return "" if "" in answers else answers[-1]

    async def _ask_one(self, url: Target) -> str:
        shown = f"https://{_host_and_port(url.origin)}{url.path}"
        try:
            status, _ = await ask(self._servers.unverified, url)
        except TooLarge:
            return ""  # it answers; what it says is read elsewhere, and left out there
        except HttpError as error:
            why = f'Get "{shown}": {failure_words(error)}'
        else:
            if 200 <= status < 300:
                return ""
            why = f"bad status from {shown}: {status}"
        return f"failing or missing response from {shown}: {why}"

    async def _write(self, item: Item, condition: Obj) -> None:
        status = item.obj.get("status") or {}
        now = self._scope.clock.now()
        conditions = with_condition(status.get("conditions") or (), condition, now)
        if conditions == status.get("conditions"):
            return
        if condition["status"] != "True":
            self._failures.add(name_of(item.obj), condition["reason"])
        changed = {**item.obj, "status": {**status, "conditions": conditions}}
        await self._registry.replace(API_SERVICES, item, changed, PLAIN)


def _host_and_port(origin: Origin) -> str:
    """With its port, whichever it is, as upstream writes it."""
    return (
        f"[{origin.host}]:{origin.port}" if ":" in origin.host else f"{origin.host}:{origin.port}"
    )
