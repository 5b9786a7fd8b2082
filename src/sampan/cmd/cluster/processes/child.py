"""A process of `sampan up --processes` that is one part of the cluster.

Job: hear the parent, run the part, say that it is ready or why it is not, stop when told to.
Invariant: it holds the data directory's lock as long as it lives: nobody starts a second cluster
    beside what is left of one.
"""

import asyncio
import io
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sampan.cmd.background import own_log
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.process import (
    STARTING_ERRORS,
    Parts,
    loop_factory,
    run_until_signal,
    why_not_started,
)
from sampan.cmd.cluster.processes import handover
from sampan.cmd.cluster.processes.parts import PartContext, part_of
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.releases import kept_minor, use_release
from sampan.cmd.settings import UpSettings
from sampan.core import log
from sampan.core.clock import SystemClock

Make = Callable[[str, PartContext], Parts]  # a part, by its name


def run(
    settings: UpSettings,
    place: handover.PartPlace,
    make: Make = part_of,
    enter: Callable[[PartContext], None] | None = None,
) -> int:
    """`enter`: what is done before there is a thread."""
    log.set_up(settings.log_level, own_file=own_log())
    answer = handover.Answer(place.answer)
    try:
        words = handover.received(place.life)
    except EOFError:
        return 1
    clock, data = SystemClock(), DataDir(Path(settings.data_dir).absolute())
    use_release(settings.release, kept_minor(data))  # the parent has looked whether it can be
    given = PartContext(settings, data, words, Progress(sys.stdout, clock), clock)
    try:
        if enter is not None:
            enter(given)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(partial(make, place.part, given), place, answer))
    except STARTING_ERRORS as error:
        answer.give(why_not_started(error))
        return 1
    return 0


async def _serve(
    make: Callable[[], Parts], place: handover.PartPlace, answer: handover.Answer
) -> None:
    handover.end_with_parent(place.life)
    silent = Progress(io.StringIO(), SystemClock())  # the parent says what there is to say
    await run_until_signal(make(), silent, lambda: answer.give(handover.READY))
