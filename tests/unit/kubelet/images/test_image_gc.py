"""Which images may go [N18]."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.contracts.runtime import Image
from sampan.kubelet.images.image_gc import (
    Disk,
    ImageGCManager,
    ImageGCPolicy,
    Seen,
    bytes_to_free,
    images_to_remove,
    update_seen,
)
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support.manual_clock import ManualClock

SETTINGS = ImageGCPolicy()


def image(name, size=10, pinned=False, digests=("r@sha256:1",)):
    return Image(name, (f"{name}:1",), digests, size, pinned=pinned)


def test_nothing_is_freed_below_the_upper_threshold_and_then_down_to_the_lower():
    assert bytes_to_free(Disk(1000, 160), SETTINGS) == 0
    assert bytes_to_free(Disk(1000, 150), SETTINGS) == 50
    assert bytes_to_free(Disk(1000, 0), ImageGCPolicy(high_percent=100)) == 0


def test_the_least_recently_used_goes_first_and_no_more_than_needed():
    images = [image("a"), image("b"), image("c")]
    seen = {"a": Seen(0, 50), "b": Seen(0, 10), "c": Seen(0, 90)}
    chosen = images_to_remove(images, seen, frozenset(), now=1000, free_bytes=15, settings=SETTINGS)
    assert [one.id for one in chosen] == ["b", "a"]


def test_young_used_and_pinned_images_stay():
    images = [image("young"), image("used"), image("pinned", pinned=True), image("old")]
    seen = {one.id: Seen(950 if one.id == "young" else 0) for one in images}
    chosen = images_to_remove(
        images, seen, frozenset({"used"}), now=1000, free_bytes=10**9, settings=SETTINGS
    )
    assert [one.id for one in chosen] == ["old"]


def test_an_image_that_no_registry_has_stays():
    imported = image("imported", digests=())
    seen = {"imported": Seen(0)}
    assert not images_to_remove(
        [imported], seen, frozenset(), now=1000, free_bytes=10**9, settings=SETTINGS
    )


def test_images_that_nobody_used_for_long_go_whatever_the_disk_says():
    settings = ImageGCPolicy(max_age_seconds=100)
    images = [image("a"), image("b")]
    seen = {"a": Seen(0, 950), "b": Seen(0, 0)}
    chosen = images_to_remove(images, seen, frozenset(), now=1000, free_bytes=0, settings=settings)
    assert [one.id for one in chosen] == ["b"]


@given(st.lists(st.tuples(st.integers(1, 100), st.booleans(), st.booleans()), max_size=10),
       st.integers(0, 500))  # fmt: skip
def test_what_is_needed_is_never_chosen(made, free):
    images = [image(f"i{n}", size, pinned) for n, (size, pinned, _) in enumerate(made)]
    used = frozenset(f"i{n}" for n, (_, _, in_use) in enumerate(made) if in_use)
    seen = update_seen({}, images, used, 0.0)
    chosen = images_to_remove(images, seen, used, now=1000, free_bytes=free, settings=SETTINGS)
    assert not any(one.pinned or one.id in used for one in chosen)


def test_a_disk_that_stays_full_is_told():
    told = []
    clock = ManualClock()
    runtime = SimulatedRuntime(clock=clock, images=["a:1"])
    garbage = ImageGCManager(
        runtime, "/", settings=ImageGCPolicy(min_age_seconds=0), clock=clock,
        warn=lambda reason, message: told.append(reason), disk=lambda _: Disk(10**9, 0),
    )  # fmt: skip
    assert asyncio.run(garbage.collect()) == 1_000_000
    assert asyncio.run(runtime.images()) == []
    assert told == ["FreeDiskSpaceFailed"]
