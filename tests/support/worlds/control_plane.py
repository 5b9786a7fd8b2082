"""A control plane for tests: the real API server on a memory store, with real controllers.

Job: start and stop it inside one event loop; wait until nothing is left to do.
Invariant: nothing of it outlives the `async with`.
"""

import asyncio
import contextlib
import functools
import random
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType

from sampan.api.features import release
from sampan.api.objects import time_text
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS, User, component
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.inprocess import InProcessClient
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import Controller, selected_controllers
from sampan.controllers.identities import user_name
from sampan.controllers.runner import ControllerRunner
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.seed import drawn
from tests.support.virtual_time import LoopClock
from tests.support.worlds.lent_objects import spoilt_objects

START_SECONDS = 60.0


def published_schema() -> Schema:
    """Of the release in effect; loaded once for all tests of a process: it never changes."""
    return _schema(release().minor)


@functools.cache
def _schema(minor: str) -> Schema:
    return Schema.load(minor)


def story(
    names: Sequence[str],
) -> Callable[[Callable[["ControlPlane"], Awaitable[None]]], Callable[[], None]]:
    """Makes a test of `async def test_…(plane)`: inside a control plane with the named controllers,
    on virtual time, begun when it is idle."""

    def controllers() -> list[Controller]:
        settings = ControllerSettings(root_ca="PEM", clock=LoopClock())
        return selected_controllers(all_controllers(settings), names)

    def decorated(test: Callable[[ControlPlane], Awaitable[None]]) -> Callable[[], None]:
        async def inside() -> None:
            async with ControlPlane(controllers) as plane:
                await plane.settled()
                await test(plane)

        def run() -> None:
            virtual_time.run(inside())

        run.__name__, run.__doc__ = getattr(test, "__name__", "story"), test.__doc__
        return run

    return decorated


class ControlPlane:
    """`async with ControlPlane(controllers) as plane: … await plane.settled()`."""

    def __init__(
        self,
        controllers: Callable[[], Sequence[Controller]] = tuple,
        settings: ApiServerSettings | None = None,
        around: Callable[[Client], Client] = lambda client: client,
        rng: random.Random | None = None,
    ) -> None:
        """`controllers` is called at each start: some of them have a memory. `around` wraps what
        they call the API with.
        `rng`: names, uids and jitter; one run is as the next."""
        self.clock = LoopClock()
        self.store = MemoryStore(self.clock)
        self.metrics = Metrics()
        settings = settings or ApiServerSettings(ca_bundle_pem="PEM")
        self._rng = rng or drawn()
        self.server = ApiServer(
            self.store, published_schema(), settings, self.clock, self.metrics, rng=self._rng
        )
        self.client = self.as_user("admin")
        self._controllers, self._around = controllers, around
        self._tasks = Tasks("control plane")
        self._informers: Informers | None = None
        self._runner: ControllerRunner | None = None

    def time_text(self) -> str:
        return time_text(self.clock.now())

    def as_user(self, name: str) -> InProcessClient:
        return InProcessClient(self.server.as_user(User(name, (MASTERS,))), field_manager=name)

    def as_component(self, name: str) -> InProcessClient:
        """With the rights that the bootstrap roles give it, and no others."""
        return InProcessClient(self.server.as_user(component(name)), field_manager=name)

    async def __aenter__(self) -> "ControlPlane":
        await self.server.start()
        await self.start_controllers()
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.stop_controllers()
        spoilt = spoilt_objects(self.server)
        await self.server.stop()
        await self.store.close()
        assert _error is not None or spoilt == [], spoilt

    async def start_controllers(self) -> None:
        client = self._around(self.as_component("system:kube-controller-manager"))
        self._informers = Informers(client, clock=self.clock)
        self._runner = ControllerRunner(
            client, self._informers, self.clock, self.metrics, self._controllers(), self._rng,
            acting_as=lambda name: self._around(self.as_component(user_name(name))),
        )  # fmt: skip
        self._tasks = Tasks("control plane")
        self._tasks.start("controllers", self._runner.run())
        # A kind that a test makes slow to come is not waited for.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                await self._runner.answered()

    async def stop_controllers(self) -> None:
        await self._tasks.stop()
        if self._informers is not None:
            await self._informers.stop()

    async def settled(self, seconds: float = 0.0) -> None:
        """Returns when the controllers have been idle for a moment; then `seconds` later."""
        assert self._runner is not None
        quiet = 0
        while quiet < 5:
            await self.clock.sleep(0.01)
            quiet = quiet + 1 if self._runner.idle() else 0
        if seconds:
            await self.clock.sleep(seconds)
