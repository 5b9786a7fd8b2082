"""Tasks with a name and an owner: the only place that starts one.

Job: start, supervise and stop asyncio tasks on behalf of a part; give each its turn of the loop
    where their work is long.
Invariant: after `stop()` returned, none of the owner's tasks runs any more.
Invariant: a failure is reported once, with the task's name; cancellation is never swallowed.
Invariant: of all who give way one goes on in each turn of the loop, in the order in which they
    came: what several parts make of somebody's large object does not add up.
"""

import asyncio
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from sampan.core.backoff import Backoff
from sampan.core.log import get_logger

K = TypeVar("K")
T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., object])
log = get_logger(__name__)

RESTART = Backoff(first_seconds=0.1, cap_seconds=10.0)
PATIENCE_SECONDS = 10.0
PART = 32  # of many, begun in one turn of the loop
_Line = deque[asyncio.Future[None]]
_line: ContextVar[_Line] = ContextVar("line")  # of a process, as its loop is


def isolated(sentence: str, calls: Iterable[Call], *args: object) -> Sequence[Call]:
    """Call all of them: what one raises is logged, and stops none of the others. Those that
    failed."""
    failed: list[Call] | None = None
    for call in calls:
        try:
            call(*args)
        except Exception as error:
            log.bug(sentence, error, of=getattr(call, "__qualname__", ""))
            failed = [*(failed or ()), call]
    return failed or ()


async def give_way() -> None:
    """Between two pieces of long work: others are served in between."""
    loop, line = asyncio.get_running_loop(), _own_line()
    turn = loop.create_future()
    line.append(turn)
    if len(line) == 1:
        loop.call_soon(_call_next, loop, line)
    await turn


def _own_line() -> _Line:
    line = _line.get(None)
    if line is None:
        _line.set(line := deque())
    return line


def _call_next(loop: asyncio.AbstractEventLoop, line: _Line) -> None:
    """Who was called stays first until the next turn: whoever comes meanwhile comes later."""
    while line and line[0].done():
        line.popleft()
    if line:
        line[0].set_result(None)
        loop.call_soon(_call_next, loop, line)


class Tasks:
    """The tasks of one part. A task that fails is logged; the others go on."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        _own_line()  # all that they start have this one
        self._running: dict[asyncio.Task[Any], None] = {}  # in the order of their start
        self._stopping = False

    def __len__(self) -> int:
        return len(self._running)

    def start(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` once. A failure is a bug and is logged; what may fail goes through all_of."""
        if self._stopping:
            work.close()
            raise RuntimeError(f"{self._owner} is stopping; {name} was not started")
        task = asyncio.get_running_loop().create_task(work, name=f"{self._owner}/{name}")
        self._running[task] = None
        task.add_done_callback(self._note_end)
        return task

    def supervise(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run `work` for as long as the owner lives; when it fails, log it and run it again."""
        return self.start(name, self._again_and_again(name, work))

    async def stop(self) -> None:
        """Cancel every task and wait until all are gone. What has not ended after PATIENCE_SECONDS
        waits for something that was begun (see `finished`): it is cut off."""
        self._stopping = True
        me = asyncio.current_task()
        waiting = [task for task in self._running if task is not me]
        for patience_seconds in (PATIENCE_SECONDS, None):
            for task in waiting:
                task.cancel()
            if waiting:
                _, left = await asyncio.wait(waiting, timeout=patience_seconds)
                waiting = [task for task in waiting if task in left]

    async def _again_and_again(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await work()
                return
            except Exception as error:
                log.bug("task failed, restarting", error, task=f"{self._owner}/{name}")
            ran = asyncio.get_running_loop().time() - started
            failures = 1 if ran > RESTART.cap_seconds else failures + 1
            await asyncio.sleep(RESTART.delay(failures))

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        try:
            error = task.exception()
        except asyncio.CancelledError:
            return  # asked for, the task forgets it: its frames have what the task was to do
        if error is not None:
            log.bug("task failed", error, task=task.get_name())


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Who is cancelled meanwhile is cancelled when it is over; when cancelled
    again, it is cut off."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at: who was cancelled has no use for it


async def all_of(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Every result, in order; the first failure cancels the rest and is raised as itself. Where
    they are many they are begun in parts: nobody waits for all of them to begin."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[T]] = []
    waiting = iter(works)
    try:
        for work in waiting:
            tasks.append(loop.create_task(work))
            if not len(tasks) % PART:
                await give_way()
        if not tasks:
            return []
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for work in waiting:
            work.close()  # cut off before it began
        await _cut_off(tasks)
        # Every failure is looked at, also where we are cut off: of a thousand that nobody has
        # looked at asyncio writes a thousand tracebacks, on the loop. The first is raised.
        failures = _failures_of(tasks)
    try:
        if failures:
            raise failures[0]
        return [task.result() for task in tasks]
    finally:
        del tasks, failures  # what failed has this frame, which has what failed


async def _cut_off(tasks: Iterable[asyncio.Task[Any]]) -> None:
    unfinished = [task for task in tasks if not task.done()]
    for task in unfinished:
        task.cancel()
    if unfinished:
        await asyncio.wait(unfinished)


def _failures_of(tasks: Iterable[asyncio.Task[Any]]) -> list[BaseException]:
    ended = (task.exception() for task in tasks if not task.cancelled())
    return [error for error in ended if error is not None]


@asynccontextmanager
async def ahead(
    works: Mapping[K, Coroutine[Any, Any, T]],
) -> AsyncIterator[Mapping[K, Awaitable[T]]]:
    """Begun before anybody waits for them; what nobody has waited for by the end of the block is
    cut off. A failure is raised where it is waited for, at the end otherwise."""
    loop = asyncio.get_running_loop()
    tasks: dict[K, asyncio.Task[T]] = {}
    waiting = iter(works.items())
    try:
        for key, work in waiting:
            tasks[key] = loop.create_task(work)
            if not len(tasks) % PART:
                await give_way()
        yield tasks
    finally:
        for _, work in waiting:
            work.close()  # cut off before it began
        await _cut_off(tasks.values())
        failures = _failures_of(tasks.values())
    if failures:
        raise failures[0]
