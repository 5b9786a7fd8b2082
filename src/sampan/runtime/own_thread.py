"""Work in a thread that does nothing else.

Job: what changes the thread itself (its namespaces, its view of the files) is done in a new one,
    which ends with it.
Invariant: whoever is cancelled leaves at once; what has begun goes on, and its result goes to who
    takes what nobody wants.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


async def in_own_thread(
    name: str, work: Callable[[], T], unwanted: Callable[[T], None] = lambda _: None
) -> T:
    """What it returns or raises. `unwanted` is called with what nobody waited for."""
    thread = ThreadPoolExecutor(1, name)
    result = asyncio.get_running_loop().run_in_executor(thread, work)
    thread.shutdown(wait=False)

    def give_away(ended: "asyncio.Future[T]") -> None:
        if ended.exception() is None:
            unwanted(ended.result())

    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        result.add_done_callback(give_away)
        raise
