"""No controller walks over a number that an object says: plans stay small and quick."""

import random
import tracemalloc
from itertools import product

import pytest

from sampan.api.schema.published import Schema
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import View
from tests.support import virtual_time
from tests.support.generators.largest_objects import (
    OTHER_EXTREMES,
    largest_objects,
)
from tests.support.processor_time import spent
from tests.support.worlds.planned import caches_of, keys_of, make
from tests.support.worlds.small_api import SmallApi

LONGEST_SECONDS = 0.010  # of the processor, not of the clock on the wall
MOST_BYTES = 1_000_000
SLOWEST_SECONDS = 0.2  # of one try, on a busy machine
ROUNDS = 3
TRIES = 3  # of which the quickest counts: others use the machine, too
CLOCK = virtual_time.LoopClock()
SETTINGS = ControllerSettings(root_ca="PEM", clock=CLOCK, cluster_cidrs=("10.0.0.0/16",))
OBJECTS = list(largest_objects(Schema.load()))
EXTREMES = {
    name: list(largest_objects(Schema.load(), extreme)) for name, extreme in OTHER_EXTREMES.items()
}


@pytest.mark.parametrize("controller", all_controllers(SETTINGS), ids=lambda one: one.name)
def test_a_plan_is_quick_and_small_whatever_the_numbers(controller):
    async def main():
        caches = caches_of(controller, OBJECTS)
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
            with spent() as one:
                plan = await controller.planned(view, key)
            assert one.seconds < SLOWEST_SECONDS
            make(plan, caches)

    for objects in EXTREMES.values():
        virtual_time.run(main(objects))


async def timed(controller, view, key):
    with spent() as one:
        await controller.planned(view, key)
    return one.seconds
