"""What /debug/api_priority_and_fairness/ shows: levels, queues and requests of this moment. Pure.

Job: the state of FlowControl → tables of text, a row for each.
Invariant: looking at it changes nothing.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping

from sampan.apiserver.flow.levels import ESTIMATE_SECONDS, Asked, Level, Queue, Running
from sampan.apiserver.flow.schemas import Flow
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.query import first_value
from sampan.core.metrics import Labels

PREFIX = "/debug/api_priority_and_fairness/"
_LEVELS = (
    "PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests",
    "ExecutingRequests", "DispatchedRequests", "RejectedRequests", "TimedoutRequests",
    "CancelledRequests",
)  # fmt: skip
_QUEUES = (
    "PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse",
    "NextDispatchR", "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum",
)  # fmt: skip
_REQUESTS = (
    "PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher",
    "ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime",
)  # fmt: skip
_DETAILS = (
    "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource",
)  # fmt: skip
_NARROWEST = 8  # as upstream's table writer is told
_NOT_STARTED = "0001-01-01T00:00:00Z"  # as Go writes a time that is none
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    levels: Mapping[str, Level]
    configured: frozenset[str]
    running: Mapping[Labels, Running]  # by flow schema and level
    waiting: Mapping[object, tuple[Flow, Asked]]  # by what it waits for
    wall: float  # what makes a time of a monotonic one


def dump_priority_levels(state: State) -> str:
    rows = [_level_row(state, name, level) for name, level in sorted(state.levels.items())]
    return _table([_LEVELS, *rows])


def _level_row(state: State, name: str, level: Level) -> Row:
    active = sum(1 for queue in level.queues if queue.waiting)
    executing = sum(len(now.served) for (_, at), now in state.running.items() if at == name)
    counts = (
        level.queued, executing, level.dispatched_requests, level.rejected, 0, level.cancelled
    )  # fmt: skip
    idle, ending = not level.queued and not executing, name not in state.configured
    return (name, str(active), _bool(idle), _bool(ending), *map(str, counts))


def dump_queues(state: State) -> str:
    return _table([_QUEUES, *_queue_rows(state)])


def _queue_rows(state: State) -> Iterator[Row]:
    for name, level in state.levels.items():
        seats: dict[Queue, list[int]] = {}
        for (_, at), now in state.running.items():
            for seat in now.served if at == name else ():
                if seat.queue is not None:
                    seats.setdefault(seat.queue, []).append(seat.seats)
        for index, queue in enumerate(level.queues):
            served, wanted = seats.get(queue, []), sum(item[1] for item in queue.waiting)
            counts = (index, len(queue.waiting), len(served), sum(served))
            work = _seat_seconds(wanted * ESTIMATE_SECONDS)
            sums = (_seat_seconds(queue.served), str(wanted), str(wanted), work)
            yield (name, *map(str, counts), *sums)


def dump_requests(state: State, detailed: bool) -> str:
    heading = (*_REQUESTS, *_DETAILS) if detailed else _REQUESTS
    return _table([heading, *_request_rows(state, detailed)])


def _request_rows(state: State, detailed: bool) -> Iterator[Row]:
    for name, level in state.levels.items():
        places = {queue: index for index, queue in enumerate(level.queues)}
        for index, queue in enumerate(level.queues):
            for place, (future, seats) in enumerate(queue.waiting):
                if (known := state.waiting.get(future)) is not None:
                    flow, asked = known
                    at = (name, flow.schema, str(index), str(place))
                    yield _request_row(at, asked, seats, state.wall, None, detailed)
        for (schema, at_level), now in state.running.items():
            for seat in now.served if at_level == name else ():
                if seat.asked is not None:
                    number = -1 if seat.queue is None else places.get(seat.queue, -1)
                    at = (name, schema, str(number), "-1")
                    seats, began = seat.seats or 1, seat.began
                    yield _request_row(at, seat.asked, seats, state.wall, began, detailed)


def _request_row(
    at: tuple[str, str, str, str], asked: Asked, seats: int, wall: float, began: float | None,
    detailed: bool,
) -> Row:  # fmt: skip
    arrived = _time(wall + asked.arrived)
    started = _NOT_STARTED if began is None else _time(wall + began)
    row = (*at, asked.distinguisher, arrived, str(seats), "0", "0s", started)
    return (*row, *_details(asked)) if detailed else row


def _details(asked: Asked) -> Row:
    info = asked.info
    if info is None or info.resource is None:
        return (asked.user, asked.verb, asked.path, "", "", "", "", "")
    row = info.resource
    return (
        asked.user, asked.verb, asked.path, info.namespace, info.name, row.api_version, row.plural,
        info.subresource,
    )  # fmt: skip


def _table(rows: list[Row]) -> str:
    """Columns as Go's tabwriter makes them: what a comma ends is as wide as the widest of it."""
    widths = [
        max(_NARROWEST, max(len(row[at]) for row in rows) + 2) for at in range(len(rows[0]) - 1)
    ]
    return "".join(f"{_line(row, widths)}\n" for row in rows)


def _line(row: Row, widths: Iterable[int]) -> str:
    cells = (f"{cell},".ljust(width) for cell, width in zip(row, widths, strict=False))
    return "".join((*cells, row[-1]))


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _seat_seconds(value: float) -> str:
    return f"{value:.8f}ss"


def _time(seconds: float) -> str:
    text = datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") + "Z"


def texts(state: Callable[[], State]) -> dict[str, Callable[[str], str]]:
    """By path: from the query to what is shown."""
    return {
        f"{PREFIX}dump_priority_levels": lambda _: dump_priority_levels(state()),
        f"{PREFIX}dump_queues": lambda _: dump_queues(state()),
        f"{PREFIX}dump_requests": lambda query: dump_requests(
            state(), bool(first_value(query, "includeRequestDetails"))
        ),
    }
