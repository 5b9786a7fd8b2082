"""A control plane of this process for lives: API server, every controller, scheduler, nodes.

Job: `lived(name, life)` on virtual time, each life in a cluster of its own.
"""

import functools
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sampan.api.errors import from_status
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.contract import Client, Listed
from sampan.client.rest import path_of
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import Controller, selected_controllers
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from tests.support import virtual_time
from tests.support.parts.certificates import Authority
from tests.support.seed import SEED
from tests.support.virtual_time import LoopClock
from tests.support.workload_lives.live import Place, live
from tests.support.workload_lives.played_metrics import VERSIONS, PlayedMetrics, replied
from tests.support.workload_lives.stand_in_nodes import StandInNodes
from tests.support.workload_lives.steps import Life
from tests.support.workload_lives.transport import InProcess
from tests.support.worlds.control_plane import ControlPlane

# Of sampan alone: it would provide volumes and addresses that the other cluster has nobody for.
NOT_HERE = ("local-provisioner", "service-lb-controller")


def lived(name: str, life: Life, seed: int = SEED) -> Obj:
    async def on_a_loop() -> Obj:  # the API server notes when it was made, by the loop's clock
        return await _Lived(life, seed).lived(name)

    return virtual_time.run(on_a_loop())


class _Lived:
    def __init__(self, life: Life, seed: int) -> None:
        self._life, self._seed = life, seed
        settings = ApiServerSettings(
            token_signing_key_pem=_keys().key,
            ca_bundle_pem="PEM",
            mount_service_account_tokens=True,
        )
        self._plane = ControlPlane(self._controllers, settings, self._metered, random.Random(seed))
        transport, clock = InProcess(self._plane.server), self._plane.clock
        metrics = PlayedMetrics(transport, clock)
        self._place = Place(transport, StandInNodes(transport, clock), metrics, clock, lasts=False)

    async def lived(self, name: str) -> Obj:
        async with self._plane as plane:
            scheduling = Tasks("scheduler")
            scheduler = Scheduler(
                plane.as_user("system:kube-scheduler"),
                clock=plane.clock,
                rng=random.Random(self._seed),
                metrics=plane.metrics,
            )
            scheduling.start("scheduler", scheduler.run())
            try:
                await self._place.nodes.join()
                return await live(self._place, name, self._life)
            finally:
                await self._place.nodes.stop()
                await scheduling.stop()

    def _controllers(self) -> list[Controller]:
        settings = ControllerSettings(
            root_ca="PEM",
            ca=_keys().ca,
            sign_account_token=self._plane.server.sign_account_token,
            clock=LoopClock(),
        )
        unwanted = [f"-{name}" for name in NOT_HERE]
        return selected_controllers(all_controllers(settings), ["*", *unwanted])

    def _metered(self, client: Client) -> Client:
        return _Metered(client, self._place.metrics)


class _Metered:
    """A client behind which somebody serves the metrics APIs."""

    def __init__(self, client: Client, metrics: PlayedMetrics) -> None:
        self._client, self._metrics = client, metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def list(self, resource: Resource, namespace: str = "", **words: Any) -> Listed:
        if resource.group not in VERSIONS:
            return await self._client.list(resource, namespace, **words)
        query = f"labelSelector={words.get('label_selector', '')}"
        found = await self._asked(path_of(resource, namespace, ""), query)
        return Listed(found["items"], 0)

    async def get(self, resource: Resource, namespace: str, name: str, **words: Any) -> Obj:
        if resource.group not in VERSIONS:
            return await self._client.get(resource, namespace, name, **words)
        path = path_of(resource, namespace, name, words.get("subresource", ""))
        asked = words.get("parameters", {}).get("labelSelector", "")
        return await self._asked(path, f"labelSelector={asked}")

    async def resources(self, group: str, version: str) -> Any:
        if group not in VERSIONS:
            return await self._client.resources(group, version)
        await self._asked(f"/apis/{group}/{version}", "")
        return ()

    async def _asked(self, path: str, query: str) -> Obj:
        code, found = replied(path, await self._metrics.answer(path, query))
        if code != 200:
            raise from_status(found, code)
        return found


class _Keys:
    def __init__(self, directory: Path) -> None:
        authority = Authority(directory)
        self.ca = Ca(authority.ca_path.read_bytes(), authority.ca_key_pem())
        self.key = authority.ca_key_pem()


@functools.cache
def _keys() -> _Keys:
    with TemporaryDirectory() as directory:
        return _Keys(Path(directory))
