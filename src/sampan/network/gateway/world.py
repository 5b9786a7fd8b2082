"""Snapshot of the objects that Gateways and routes are judged by.

Job: what the API has, as one value; a verdict, as a condition says it.
"""

from collections.abc import Callable, Mapping, Sequence

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

CONTROLLER = "sampan.dev/gateway"
Find = Callable[[str], Obj | None]  # by key


@dataclass(frozen=True, slots=True)
class Verdict:
    type: str
    holds: bool
    reason: str
    message: str = ""

    def condition(self, obj: Obj) -> Obj:
        """As a status has it, without its time."""
        return {
            "type": self.type,
            "status": "True" if self.holds else "False",
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": obj["metadata"].get("generation") or 0,
        }


@dataclass(frozen=True, slots=True)
class World:
    classes: Sequence[Obj]
    gateways: Sequence[Obj]
    routes: Sequence[Obj]
    grants: Sequence[Obj]
    service: Find
    secret: Find
    namespace: Find
    addresses: Sequence[Obj]  # of a Gateway's status
    # Where the ports that a listener may name are on this machine, by protocol.
    ports: Mapping[str, Mapping[int, int]]


def is_our_class(gateway_class: Obj) -> bool:
    return bool((gateway_class.get("spec") or {}).get("controllerName") == CONTROLLER)
