"""Controllers without a runner: caches that were filled by hand, and plans of what they show.

Job: the caches that one controller reads, the keys that their objects wake, and what of a plan is
    there when it plans again.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from sampan.api.objects import Obj, copy_of, key_of
from sampan.api.resources import Resource
from sampan.client.indexer import Cache
from sampan.controllers.actions import Create, Plan
from sampan.controllers.controller import Controller, Later
from tests.support.generators.largest_objects import LONG_AGO
from tests.support.releases import rows_of

BY_KIND = {(one.api_version, one.kind): one for one in rows_of()}
Filled = dict[Resource, Cache]


def caches_of(controller: Controller, objects: Iterable[Obj]) -> Filled:
    """With every object, so that whoever looks around finds the others, too."""
    caches: Filled = {}
    for resource in {*controller.wakes, *controller.indices}:
        cache = caches[resource] = Cache(controller.indices.get(resource))
        for name, function in controller.tallies.get(resource, {}).items():
            cache.add_tally(name, function)
        for obj in objects:
            if BY_KIND[obj["apiVersion"], obj["kind"]] == resource:
                cache.put(obj)
    return caches


def keys_of(controller: Controller, caches: Filled) -> Iterator[tuple[str, Any]]:
    """Of each change that it hears of, the keys that it plans then."""
    for resource, wake in controller.wakes.items():
        for obj in caches[resource].all():
            for key in wake(caches.__getitem__, None, obj):
                yield key_of(obj), key.key if isinstance(key, Later) else key


def make(plan: Plan, caches: Filled) -> None:
    """What it creates first (a revision, a ReplicaSet, claims) is there when it plans again."""
    for number, action in enumerate(plan.actions):
        if isinstance(action, Create) and action.resource in caches:
            made = copy_of(action.obj)
            meta = made["metadata"]
            meta.setdefault("name", f"{meta.get('generateName')}{number}")
            meta |= {"uid": f"made-{meta['name']}", "creationTimestamp": LONG_AGO}
            caches[action.resource].put(made)
