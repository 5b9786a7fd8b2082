"""What plugins are made of.

Job: one value with everything that a plugin may need; each takes what it uses.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import field

from sampan.api.schema.published import Schema
from sampan.apiserver.admission.settings import AdmissionSettings
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.authz.rbac import Rbac
from sampan.apiserver.outside.configured_callers import ConfiguredCallers
from sampan.apiserver.registry.generic import Registry
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics
from sampan.core.side_thread import SideThread


@dataclass(frozen=True, slots=True)
class Aid:
    """What the evaluation of expressions needs of the server."""

    authorization: Authorization
    clock: Clock
    side: SideThread


@dataclass(frozen=True, slots=True)
class PluginParts:
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
    # What a plugin opened is closed with the server.
    at_stop: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    @property
    def aid(self) -> Aid:
        return Aid(self.authorization, self.clock, self.side)
