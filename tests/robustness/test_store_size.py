"""The SQLite file stays bounded however often its objects are written. [E1]"""

import asyncio

import pytest

from tests.support.generators.endless_updates import Load, bound_bytes, endless_updates

pytestmark = pytest.mark.slow


def test_a_hundred_thousand_updates_of_a_thousand_objects_keep_the_file_under_its_bound(tmp_path):
    load = Load(updates=100_000, interval=5_000)
    assert bound_bytes(load) < 60_000_000 < load.updates * load.value_bytes
    found = asyncio.run(endless_updates(tmp_path / "store.db", load))
    assert found.largest_bytes < bound_bytes(load)
    assert found.last_bytes < bound_bytes(load)
