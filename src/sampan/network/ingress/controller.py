"""Ingress controller: Ingresses become routes; their status and events.

Job: keep the routing table; write the class, each Ingress' status, and events of what is wrong.
Invariant: Ingresses of other classes are neither served nor written to.
Invariant: what is wrong with an Ingress is told once, until it is something else.
Owner: one per cluster.
"""

import random
from collections.abc import Iterable, Sequence
from functools import partial

from sampan.api.errors import AlreadyExists, ApiError, NotFound
from sampan.api.objects import Obj, key_of, name_of, namespace_of, uid_of
from sampan.api.resources import (
    ENDPOINT_SLICES,
    INGRESS_CLASSES,
    INGRESSES,
    NODES,
    SECRETS,
    SERVICES,
)
from sampan.api.rules.endpoint_slices import services_of_slice
from sampan.api.rules.nodes import is_simulated
from sampan.client.contract import Client
from sampan.client.events import EventRecorder, reference
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.http.origin import Origin
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.core.workqueue import WorkQueue
from sampan.network.ingress.backends import Unavailable, endpoints_of
from sampan.network.ingress.certificates import TLS_SECRET
from sampan.network.ingress.classes import NAME, ingress_class, is_ours, our_classes
from sampan.network.ingress.forwarding import Asked, Way
from sampan.network.ingress.problems import Problem, problems_of
from sampan.network.ingress.routing import (
    Backend,
    RoutingTable,
    backends_of,
    routing_table,
    tls_hosts,
)

COMPONENT = "sampan-ingress-controller"
RETRY_SECONDS = 1.0
NO_RULE = Unavailable(404, "no Ingress or HTTPRoute has a rule for this host and path")
log = get_logger(__name__)


class IngressController:
    def __init__(
        self, client: Client, informers: Informers, addresses: Sequence[Obj], clock: Clock,
        rng: random.Random,
    ) -> None:  # fmt: skip
        """`addresses`: where Ingresses are served, as their status says it."""
        self._client, self._addresses, self._clock = client, list(addresses), clock
        self._recorder = EventRecorder(client, COMPONENT, clock=clock, rng=rng)
        self._ingresses = informers.of(
            INGRESSES, indices={"services": _service_keys, "secrets": _secret_keys}
        )
        self._classes = informers.of(INGRESS_CLASSES)
        self._services = informers.of(SERVICES)
        self._slices = informers.of(ENDPOINT_SLICES, indices={"service": services_of_slice})
        self._secrets = informers.of(SECRETS, field_selector=f"type={TLS_SECRET}")
        self._nodes = informers.of(NODES)
        self._queue: WorkQueue[str] = WorkQueue()
        self._table: RoutingTable | None = None  # None: to be made anew
        self._told: dict[str, frozenset[Problem]] = {}
        self._tasks = Tasks("ingress controller")

    # What requests ask.

    def table(self) -> RoutingTable:
        if self._table is None:
            ours = our_classes(self._classes.cache.all())
            self._table = routing_table(
                ingress for ingress in self._ingresses.cache.all() if is_ours(ingress, ours)
            )
        return self._table

    def find(self, asked: Asked) -> Way | Unavailable:
        backend = self.table().match(asked.host, asked.path)
        if backend is None:
            return NO_RULE
        found = self.endpoints(backend)
        return found if isinstance(found, Unavailable) else Way(found)

    def endpoints(self, backend: Backend) -> Sequence[Origin] | Unavailable:
        key = f"{backend.namespace}/{backend.service}"
        slices = self._slices.cache.by("service", key)
        return endpoints_of(backend, self._services.cache.get(key), slices, self._is_simulated)

    def service(self, key: str) -> Obj | None:
        return self._services.cache.get(key)

    def secret(self, key: str) -> Obj | None:
        return self._secrets.cache.get(key)

    def _is_simulated(self, node: str) -> bool:
        return is_simulated(self._nodes.cache.get(node) or {})

    # What the API is told.

    def start(self) -> None:
        """When everything that it follows is there."""
        self._ingresses.on_change(self._ingress_changed)
        self._classes.on_change(self._class_changed)
        self._services.on_change(partial(self._named_changed, "services"))
        self._secrets.on_change(partial(self._named_changed, "secrets"))
        self._tasks.supervise("events", self._recorder.run)
        self._tasks.supervise("controller", self._run)

    async def stop(self) -> None:
        await self._tasks.stop()
        self._queue.close()

    async def _run(self) -> None:
        await self._ensure_class()
        while True:
            await self._sync_next()

    async def _ensure_class(self) -> None:
        """Where it is already, it is as its owner wants it."""
        while True:
            try:
                if self._classes.cache.get(NAME) is None:
                    wanted = ingress_class(self._classes.cache.all())
                    await self._client.create(INGRESS_CLASSES, wanted)
                return
            except AlreadyExists:
                return
            except ApiError as error:
                log.warning("IngressClass not created, trying again", error=error)
            await self._clock.sleep(RETRY_SECONDS)

    async def _sync_next(self) -> None:
        key = await self._queue.get()
        try:
            await self._sync(key)
            self._queue.forget(key)
        except NotFound:
            self._queue.forget(key)  # it is gone
        except ApiError as error:
            log.warning("Ingress not synced, trying again", ingress=key, error=error)
            self._queue.retry(key)
        finally:
            self._queue.done(key)

    async def _sync(self, key: str) -> None:
        ingress = self._ingresses.cache.get(key)
        if ingress is None or not is_ours(ingress, our_classes(self._classes.cache.all())):
            self._told.pop(key, None)
            return
        self._tell(key, ingress)
        present = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress")
        if present == self._addresses:
            return
        patch = {
            "metadata": {"uid": uid_of(ingress)},
            "status": {"loadBalancer": {"ingress": self._addresses}},
        }
        await self._client.patch(
            INGRESSES, namespace_of(ingress), name_of(ingress), patch,
            patch_type="merge", subresource="status",
        )  # fmt: skip
        self._recorder.record(reference(ingress), "Normal", "Sync", "Scheduled for sync")

    def _tell(self, key: str, ingress: Obj) -> None:
        found = frozenset(problems_of(ingress, self._services.cache.get, self.secret))
        for reason, message in sorted(found - self._told.get(key, frozenset())):
            self._recorder.record(reference(ingress), "Warning", reason, message)
        if found:
            self._told[key] = found
        else:
            self._told.pop(key, None)

    # What the informers call.

    def _ingress_changed(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        if old is None or new is None or old.get("spec") != new.get("spec") or _moved(old, new):
            self._table = None
        self._queue.add(key_of(obj))

    def _class_changed(self, _old: Obj | None, _new: Obj | None) -> None:
        self._table = None
        for ingress in self._ingresses.cache.all():
            self._queue.add(key_of(ingress))

    def _named_changed(self, index: str, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        for ingress in self._ingresses.cache.by(index, key_of(obj)):
            self._queue.add(key_of(ingress))


def _moved(old: Obj, new: Obj) -> bool:
    """The annotation that was there before classes."""
    return (old["metadata"].get("annotations") or {}) != (new["metadata"].get("annotations") or {})


def _service_keys(ingress: Obj) -> Iterable[str]:
    return {f"{each.namespace}/{each.service}" for each in backends_of(ingress) if each.service}


def _secret_keys(ingress: Obj) -> Iterable[str]:
    return {key for _, key in tls_hosts(ingress)}
