"""gpu.sampan.dev: a made-up driver of devices that are claimed (dynamic resource allocation).

Job: publish a node's devices, prepare claims by writing CDI specifications, say how devices are.
Invariant: preparing and unpreparing again what is done already changes nothing.
Owner: cmd/ runs one as a process of its own.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from sampan.api.errors import AlreadyExists, ApiError
from sampan.api.objects import Obj, time_text, uid_of
from sampan.api.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock
from sampan.core.grpc.socket_server import SocketServer
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.drivers.dra.settings import DraSettings
from sampan.drivers.dra.slices import (
    cdi_name,
    cdi_specification,
    device_names,
    results_of,
    slice_of,
)
from sampan.drivers.faults import Faults
from sampan.drivers.health_file import HealthFile
from sampan.drivers.registrar import Registrar
from sampan.plugins.dra import HEALTH_SERVICE, ClaimName, Prepared, Readied, Unprepared, dra_methods
from sampan.plugins.registration import Introduction

log = get_logger(__name__)

DRA_PLUGIN = "DRAPlugin"
RETRY_SECONDS = 1.0


class DraDriver:
    def __init__(
        self,
        settings: DraSettings,
        client: Callable[[], Client],
        endpoint: str,
        registration: str,
        clock: Clock,
    ) -> None:
        """`endpoint`: its socket; `registration`: the one in plugins_registry, or empty."""
        self._settings, self._make_client, self._clock = settings, client, clock
        self._tasks, self._health_file = Tasks("DRA driver"), HealthFile(settings.health)
        os.makedirs(os.path.dirname(endpoint), exist_ok=True)
        methods = dra_methods(settings.versions, self._prepare, self._unprepare, self._health)
        self._server = SocketServer(endpoint, Faults(settings.faults).among(methods))
        self._registrar: Registrar | None = None
        if registration:
            versions = (*settings.versions, HEALTH_SERVICE)
            said = Introduction(DRA_PLUGIN, settings.name, endpoint, versions)
            self._registrar = Registrar(registration, said)
        self._client: Client | None = None

    async def start(self) -> None:
        """Raises OSError."""
        self._client = self._make_client()
        os.makedirs(self._settings.cdi_directory, exist_ok=True)
        await self._server.start()
        if self._registrar is not None:
            await self._registrar.start()
        self._tasks.supervise("slices", self._keep_published)
        self._tasks.supervise("health", self._health_file.watch)

    async def stop(self) -> None:
        await self._tasks.stop()
        with contextlib.suppress(OSError):
            if self._registrar is not None:
                await self._registrar.stop()
        await self._server.stop(1.0)

    def hurry(self) -> None:
        """It has nobody to wait for."""

    # Devices.

    async def _keep_published(self) -> None:
        """A kubelet that starts deletes what it does not know to be true any more."""
        assert self._client is not None
        selector = f"spec.nodeName={self._settings.node_name},spec.driver={self._settings.name}"
        selection = Selection(RESOURCE_SLICES, field_selector=selector)
        informer = Informer(self._client, selection, clock=self._clock)
        changed = asyncio.Event()
        informer.on_change(lambda _old, _new: changed.set())
        self._tasks.supervise("slices informer", informer.run)
        await informer.synced()
        while True:
            changed.clear()
            if not list(informer.cache.all()) and not await self._publish(self._client):
                await self._clock.sleep(RETRY_SECONDS)
                continue
            await changed.wait()

    async def _publish(self, client: Client) -> bool:
        try:
            node = await client.get(NODES, "", self._settings.node_name)
            await client.create(RESOURCE_SLICES, slice_of(self._settings, uid_of(node)))
        except AlreadyExists:
            return True
        except ApiError as error:
            log.warning("devices were not published, trying again", error=error)
            return False
        log.info("ResourceSlice published", devices=len(device_names(self._settings)))
        return True

    # Claims.

    async def _prepare(self, claims: Sequence[ClaimName]) -> Prepared:
        return {claim.uid: await self._prepare_one(claim) for claim in claims}

    async def _prepare_one(self, name: ClaimName) -> Sequence[Readied] | str:
        assert self._client is not None
        try:
            claim = await self._client.get(RESOURCE_CLAIMS, name.namespace, name.name)
        except ApiError as error:
            return f"claim was not read: {error}"
        if uid_of(claim) != name.uid:
            return f"claim {name.namespace}/{name.name} was replaced"
        results = results_of(self._settings, claim)
        if not results:
            return f"claim {name.namespace}/{name.name} has no devices of this driver here"
        written = json.dumps(cdi_specification(self._settings, name.uid, results))
        await asyncio.to_thread(_write, self._file(name.uid), written)
        if self._settings.writes_status:
            await self._tell(claim, results)
        return [
            Readied(
                item["pool"],
                item["device"],
                [str(item.get("request") or "").partition("/")[0]],
                [cdi_name(self._settings, name.uid, item["device"])],
                item.get("shareID"),
            )
            for item in results
        ]

    async def _tell(self, claim: Obj, results: Sequence[Obj]) -> None:
        """How the devices are, in the claim's status."""
        assert self._client is not None
        others = [
            item
            for item in (claim.get("status") or {}).get("devices") or ()
            if item.get("driver") != self._settings.name
        ]
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Prepared",
            "message": "made up, and ready",
            "lastTransitionTime": time_text(self._clock.now()),
        }
        ours = [
            {"driver": item["driver"], "pool": item["pool"], "device": item["device"],
             "conditions": [ready], "data": {"preparedOn": self._settings.node_name}}
            for item in results
        ]  # fmt: skip
        meta = claim["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": {"devices": [*others, *ours]}}
        try:
            await self._client.patch(
                RESOURCE_CLAIMS, meta["namespace"], meta["name"], patch, patch_type="merge",
                subresource="status",
            )  # fmt: skip
        except ApiError as error:
            log.warning("status of a claim was not written", claim=meta["name"], error=error)

    async def _unprepare(self, claims: Sequence[ClaimName]) -> Unprepared:
        for claim in claims:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file(claim.uid))
        return {claim.uid: "" for claim in claims}

    def _file(self, claim_uid: str) -> str:
        return f"{self._settings.cdi_directory}/{self._settings.name}-{claim_uid}.json"

    # Health.

    async def _health(self) -> AsyncIterator[Mapping[tuple[str, str], str]]:
        while True:
            change, said = self._health_file.next_change(), self._health_file.read()
            yield {
                (self._settings.node_name, name): said.get(name, "Healthy")
                for name in device_names(self._settings)
            }
            await change.wait()


def _write(path: str, text: str) -> None:
    """A runtime reads all of it, or nothing."""
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.rename(f"{path}.new", path)
