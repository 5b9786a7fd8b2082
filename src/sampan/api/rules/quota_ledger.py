"""What namespaces that have quotas use, kept as their objects come, change and go.

Job: for the kinds of a namespace that somebody counts: how many objects take alike. A quota's usage
    is a sum over these, and costs what the objects differ in, not how many there are.
Invariant: what is followed is counted as it was put last; what is not followed costs nothing.
Owner: whoever sees every change of the kinds: admission, and the quota controller.
"""

from collections.abc import Callable, Iterable
from functools import partial

from sampan.api.objects import Obj, key_of
from sampan.api.resources import Resource
from sampan.api.rules.pod_resources import Amounts
from sampan.api.rules.quota import Taking, taking_of, total_of
from sampan.api.rules.tally import Tally

_ALL = ""  # a tally is of one namespace already


class QuotaLedger:
    def __init__(self) -> None:
        self._tallies: dict[str, dict[Resource, Tally]] = {}  # by namespace

    def put(self, resource: Resource, namespace: str, key: str, obj: Obj | None) -> bool:
        """What is there under the key now. Returns whether that changes what the namespace uses,
        or may: of what is not followed nobody can tell."""
        kinds = self._tallies.get(namespace)
        tally = None if kinds is None else kinds.get(resource)
        return True if tally is None else tally.put(key, obj)

    def used(
        self, quota: Obj, namespace: str, resource: Resource, there: Callable[[], Iterable[Obj]]
    ) -> Amounts:
        """What the quota counts of a kind, which is followed from now on; `there`: the objects, if
        it was not."""
        kinds = self._tallies.setdefault(namespace, {})
        tally = kinds.get(resource)
        if tally is None:
            tally = kinds[resource] = Tally(partial(_taking, resource))
            for obj in there():
                tally.put(key_of(obj), obj)
        return total_of(quota, resource, tally.of(_ALL))

    def forget(self, namespace: str) -> None:
        self._tallies.pop(namespace, None)

    def forget_kind(self, resource: Resource) -> None:
        for kinds in self._tallies.values():
            kinds.pop(resource, None)


def _taking(resource: Resource, obj: Obj) -> tuple[str, Taking]:
    return _ALL, taking_of(resource, obj)
