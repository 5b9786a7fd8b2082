"""RequestScope: what the handlers of requests share.

Job: one value with the registry, schema, strategies, admission and the rest that a call meets on
    its way; put together by the server, once.
"""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.custom.custom_version import custom_of
from sampan.api.objects import Obj, is_larger
from sampan.api.schema.published import Schema
from sampan.apiserver.admission.chain import Admission
from sampan.apiserver.authn.chain import Authentication
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.extension.conversion import Conversions
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.registry.strategies import Strategies
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.write.ownership import Ownership
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.side_thread import SideThread
from sampan.core.telemetry.traces import NO_TRACES, Traces

T = TypeVar("T")
# Whose objects hold expressions, which are compiled when they are written.
_COMPILED_GROUPS = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io"})
# Take some 5 ms to decode, default and validate; of addresses and of resources of containers 10.
LARGE_BYTES = 16 * 1024
LARGE_VALUES = 1_000  # within an object: as many as there are in a body of that size


@dataclass(frozen=True, slots=True)
class RequestScope:
    registry: Registry
    schema: Schema
    strategies: Strategies
    ownership: Ownership
    conversions: Conversions
    authentication: Authentication
    authorization: Authorization
    admission: Admission
    settings: ApiServerSettings
    clock: Clock
    rng: random.Random
    side: SideThread  # for the steps of large objects
    traces: Traces = NO_TRACES

    async def beside(self, size: int, step: Callable[[], T]) -> T:
        """A pure step of a write: at once, or beside the loop where the object is large."""
        return step() if size <= LARGE_BYTES else await self.side.run(step)


def weight_of(call: Call) -> int:
    """The size of a body, by what it takes to read and check it."""
    custom = custom_of(call.resource)
    if custom is not None and not custom.is_compiled:
        return call.size + 16 * custom.schema_bytes
    return 16 * call.size if call.resource.group in _COMPILED_GROUPS else call.size


def weight_with(call: Call, obj: Obj) -> int:
    """Likewise, with what admission has made of the object: a LimitRange gives each container as
    many resources as it names itself, and a webhook anything."""
    weight = weight_of(call)
    return LARGE_BYTES + 1 if weight <= LARGE_BYTES and is_larger(obj, LARGE_VALUES) else weight


# What answers a call that is not generic.
Handler = Callable[[RequestScope, User, Call], Awaitable[Answer | ListAnswer]]
CUSTOM = "*"  # every kind that a definition defines, in the table of handlers
