"""`sampan snapshot save` while clients write: it is the state of one moment of the log that all
watchers saw, whatever came before and after it."""

import asyncio
import random

import pytest

from sampan.client import kubeconfig, rest
from sampan.cmd.snapshot import snapshot_file
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks
from tests.robustness.contenders import Arena, Contender
from tests.robustness.followers import Follower, all_caught_up, listed, values_of
from tests.support.history import Listed, revision_faults
from tests.support.parts.sampan_process import SampanProcess
from tests.support.seed import SEED
from tests.support.watch_log import log_faults

SNAPSHOTS, CONTENDERS = 4, 4
LABEL = ("test", "snapshot")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def cluster(tmp_path):
    made = SampanProcess(tmp_path, "--nodes", "2")
    made.up()
    yield made
    made.stop()
    made.reset()


def saved(cluster, number):
    """The revision, and what of the arena is in it; nothing in it is newer than it says."""
    cluster.run("snapshot", "save", f"s{number}")
    [path] = cluster.data_dir.rglob(f"s{number}.snapshot")
    found = snapshot_file.read(path)
    assert not [note for note in found.notes if "another moment" in note]
    revision = int(found.revision)
    newest = max(int(one["metadata"].get("resourceVersion", 0)) for one in found.objects)
    assert newest <= revision
    ours = [one for one in found.objects
            if one["metadata"].get("labels", {}).get(LABEL[0]) == LABEL[1]]  # fmt: skip
    return Listed(revision, values_of(ours))


async def story(cluster):
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    client = rest.connect(connection, clock=SystemClock())
    arena = Arena(client, "=".join(LABEL), random.Random(f"{SEED} watchers"))
    followers, tasks = [Follower(arena), Follower(arena)], Tasks("snapshots")
    try:
        following = [tasks.start("follower", one.run()) for one in followers]
        working = [
            tasks.start("client", Contender(arena, f"{SEED} {number}").run())
            for number in range(CONTENDERS)
        ]
        for number in range(SNAPSHOTS):
            before, written = arena.known, len(arena.answered)
            arena.lists.append(await asyncio.to_thread(saved, cluster, number))
            assert arena.lists[-1].revision >= before, "older than what was answered before"
            assert len(arena.answered) > written, "somebody wrote meanwhile"
        arena.stop.set()
        await asyncio.wait(working)
        final = await listed(arena)
        await all_caught_up(followers, following, final, 60)
    finally:
        await tasks.stop()
        await client.close()
    arena.found_at_last(final)
    arena.judge()
    return arena, [one.story for one in followers]


def test_a_snapshot_is_one_moment_of_the_log_that_everybody_saw(cluster):
    arena, stories = asyncio.run(story(cluster))
    faults = [*arena.faults, *revision_faults(arena.answered)]
    assert faults + log_faults(stories, arena.lists, arena.answered) == [], f"SAMPAN_SEED={SEED}"
    assert any(one.values for one in arena.lists)
