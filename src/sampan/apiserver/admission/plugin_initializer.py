"""PluginInitializer: what admission plugins are made from.

Job: one value with everything that a plugin may want; each takes what it uses.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TypeVar

from sampan.api.schema.published import Schema
from sampan.apiserver.admission.settings import AdmissionSettings
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.authz.rbac import Rbac
from sampan.apiserver.extension.conversion import Conversions
from sampan.apiserver.outside.configured_callers import ConfiguredCallers
from sampan.apiserver.registry.generic import Registry
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics
from sampan.core.side_thread import SideThread

T = TypeVar("T")
SHARE_SECONDS = 0.01
QUICK_BYTES = 1024  # of expressions: some 8 ms to parse, check and compile


class LoopShare:
    """What evaluations have had of the loop since they last gave way: each is short, but a write
    may meet hundreds of policies and conditions."""

    def __init__(self) -> None:
        self._used_seconds = 0.0

    async def give_way(self) -> None:
        if self._used_seconds > SHARE_SECONDS:
            self._used_seconds = 0.0
            await asyncio.sleep(0)

    def use(self, seconds: float) -> None:
        self._used_seconds += seconds


@dataclass(frozen=True, slots=True)
class Aid:
    """What the evaluation of expressions needs of the server."""

    authorization: Authorization
    clock: Clock
    side: SideThread
    conversions: Conversions
    share: LoopShare = field(default_factory=LoopShare)

    async def compile(self, text_bytes: int, step: Callable[[], T]) -> T:
        """Expressions: at once, or beside the loop where there is much of them."""
        return step() if text_bytes <= QUICK_BYTES else await self.side.run(step)


@dataclass(frozen=True, slots=True)
class PluginInitializer:
    registry: Registry
    authorization: Authorization
    rbac: Rbac
    mount_tokens: bool
    settings: AdmissionSettings
    make_namespace: Callable[[str], Awaitable[None]]
    metrics: Metrics
    clock: Clock
    rng: random.Random
    schema: Schema
    side: SideThread  # for expressions that take long
    callers: ConfiguredCallers
    conversions: Conversions
    # What a plugin opened is closed with the server.
    at_stop: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    share: LoopShare = field(default_factory=LoopShare)

    @property
    def aid(self) -> Aid:
        return Aid(self.authorization, self.clock, self.side, self.conversions, self.share)
