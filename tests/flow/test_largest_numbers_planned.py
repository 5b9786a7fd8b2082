"""No controller walks over a number that an object says: plans stay small and quick."""

import random
import time
import tracemalloc
from itertools import product

import pytest

from sampan.api.objects import copy_of, key_of
from sampan.api.schema.published import Schema
from sampan.client.indexer import Cache
from sampan.controllers.actions import Create
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import Later, View
from tests.support import virtual_time
from tests.support.generators.largest_objects import (
    LONG_AGO,
    OTHER_EXTREMES,
    largest_objects,
)
from tests.support.releases import rows_of
from tests.support.worlds.small_api import SmallApi

LONGEST_SECONDS = 0.010  # of the processor, not of the clock on the wall
MOST_BYTES = 1_000_000
SLOWEST_SECONDS = 0.2  # of one try, on a busy machine
ROUNDS = 3
TRIES = 3  # of which the quickest counts: others use the machine, too
CLOCK = virtual_time.LoopClock()
SETTINGS = ControllerSettings(root_ca="PEM", clock=CLOCK, cluster_cidrs=("10.0.0.0/16",))
BY_KIND = {(one.api_version, one.kind): one for one in rows_of()}
OBJECTS = list(largest_objects(Schema.load()))
EXTREMES = {
    name: list(largest_objects(Schema.load(), extreme)) for name, extreme in OTHER_EXTREMES.items()
}


def caches_of(controller, objects=OBJECTS):
    """With every object, so that whoever looks around finds the largest of the others, too."""
    caches = {}
    for resource in {*controller.wakes, *controller.indices}:
        cache = caches[resource] = Cache(controller.indices.get(resource))
        for name, function in controller.tallies.get(resource, {}).items():
            cache.add_tally(name, function)
        for obj in objects:
            if BY_KIND[obj["apiVersion"], obj["kind"]] == resource:
                cache.put(obj)
    return caches


def keys_of(controller, caches):
    """Of each change that it hears of, the keys that it plans then."""
    for resource, wake in controller.wakes.items():
        for obj in caches[resource].all():
            for key in wake(caches.__getitem__, None, obj):
                yield key_of(obj), key.key if isinstance(key, Later) else key


@pytest.mark.parametrize("controller", all_controllers(SETTINGS), ids=lambda one: one.name)
def test_a_plan_is_quick_and_small_whatever_the_numbers(controller):
    async def main():
        caches = caches_of(controller)
        view = View(caches.__getitem__, SmallApi(CLOCK), 1_700_000_000.0, random.Random(1))
        too_much = []
        for turn, (obj, key) in product(range(ROUNDS), list(keys_of(controller, caches))):
            seconds = min([await timed(controller, view, key) for _ in range(TRIES)])
            tracemalloc.start()
            try:
                plan = await controller.planned(view, key)
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            if seconds > LONGEST_SECONDS or most > MOST_BYTES:
                too_much.append((turn, obj, key, f"{seconds * 1000:.1f} ms", most))
            make(plan, caches)
        assert not too_much

    virtual_time.run(main())


@pytest.mark.parametrize("controller", all_controllers(SETTINGS), ids=lambda one: one.name)
def test_a_plan_fails_at_no_other_extreme(controller):
    """Numbers below zero, percentages beyond a hundred, the first and the last day: of what can be
    written into a status by hand, or was stored before it was refused."""

    async def main(objects):
        caches = caches_of(controller, objects)
        view = View(caches.__getitem__, SmallApi(CLOCK), 1_700_000_000.0, random.Random(1))
        for _, (_, key) in product(range(ROUNDS), list(keys_of(controller, caches))):
            began = time.thread_time()
            plan = await controller.planned(view, key)
            assert time.thread_time() - began < SLOWEST_SECONDS
            make(plan, caches)

    for objects in EXTREMES.values():
        virtual_time.run(main(objects))


async def timed(controller, view, key):
    began = time.thread_time()
    await controller.planned(view, key)
    return time.thread_time() - began


def make(plan, caches):
    """What it creates first (a revision, a ReplicaSet, claims) is there when it plans again."""
    for number, action in enumerate(plan.actions):
        if isinstance(action, Create) and action.resource in caches:
            made = copy_of(action.obj)
            meta = made["metadata"]
            meta.setdefault("name", f"{meta.get('generateName')}{number}")
            meta |= {"uid": f"made-{meta['name']}", "creationTimestamp": LONG_AGO}
            caches[action.resource].put(made)
