import asyncio
import os

import pytest

from sampan.core.tasks import all_of
from sampan.kubelet.pods import allocation_checkpoint
from sampan.kubelet.pods.allocation_checkpoint import MOST_CHANGES, AllocationCheckpoint

ONE, TWO = {"main": {"requests": {"cpu": "1"}}}, {"main": {"requests": {"cpu": "2"}}}


def read(path):
    return AllocationCheckpoint(str(path)).read()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "root" / "allocated_pods_state"


def test_the_last_word_on_each_pod_counts(path):
    checkpoint = AllocationCheckpoint(str(path))
    assert checkpoint.read() == {}
    checkpoint.put("a", ONE, {"a": ONE})
    checkpoint.put("b", ONE, {"a": ONE, "b": ONE})
    checkpoint.put("a", TWO, {"a": TWO, "b": ONE})
    checkpoint.put("b", None, {"a": TWO})
    assert read(path) == {"a": TWO}


def test_a_file_of_an_earlier_version_is_read_and_continued(path):
    path.parent.mkdir()
    path.write_text('{"allocations": {"a": {"main": {"requests": {"cpu": "1"}}}}}')
    checkpoint = AllocationCheckpoint(str(path))
    assert checkpoint.read() == {"a": ONE}
    checkpoint.put("b", TWO, {"a": ONE, "b": TWO})
    assert read(path) == {"a": ONE, "b": TWO}


def test_a_line_that_was_cut_off_is_as_none_and_hides_no_other(path):
    checkpoint = AllocationCheckpoint(str(path))
    checkpoint.put("a", ONE, {"a": ONE})
    checkpoint.put("b", ONE, {"a": ONE, "b": ONE})
    path.write_bytes(path.read_bytes()[:-5])
    again = AllocationCheckpoint(str(path))
    assert again.read() == {"a": ONE}
    again.put("c", TWO, {"a": ONE, "c": TWO})
    assert read(path) == {"a": ONE, "c": TWO}


def test_lines_that_say_nothing_more_do_not_pile_up(path):
    checkpoint = AllocationCheckpoint(str(path))
    for number in range(3 * MOST_CHANGES):
        given = (ONE, TWO)[number % 2]
        checkpoint.put("a", given, {"a": given})
    assert len(path.read_bytes().splitlines()) <= MOST_CHANGES + 3
    assert read(path) == {"a": TWO}


def test_without_a_path_nothing_is_remembered():
    checkpoint = AllocationCheckpoint("")
    checkpoint.put("a", ONE, {"a": ONE})
    checkpoint.replace({})
    asyncio.run(checkpoint.stored())
    assert checkpoint.read() == {}


def test_one_wait_for_the_disk_serves_all_who_came_before_it(path, monkeypatch):
    synced, sync = [], os.fdatasync

    def noted(file):
        synced.append(file)
        sync(file)

    monkeypatch.setattr(allocation_checkpoint.os, "fdatasync", noted)

    async def story():
        checkpoint = AllocationCheckpoint(str(path))
        for uid in "abc":
            checkpoint.put(uid, ONE, {uid: ONE})
        await all_of(checkpoint.stored() for _ in range(3))
        assert len(synced) == 1
        await checkpoint.stored()
        assert len(synced) == 1
        checkpoint.put("d", ONE, {"d": ONE})
        await checkpoint.stored()
        assert len(synced) == 2

    asyncio.run(story())
