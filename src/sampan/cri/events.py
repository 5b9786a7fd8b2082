"""Container events of the runtime: CRI's GetContainerEvents, or containerd's own.

Job: one stream of `ContainerEvent`, whichever kind of events the runtime offers.
Invariant: the stream ends with an error of the connection, never in silence: the reader
    subscribes again, and then looks at everything (neither kind of stream replays).
"""

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any

from sampan.core.fast_dataclass import dataclass
from sampan.cri.client import CriClient, CriUnavailable
from sampan.cri.gen import containerd_tasks_pb2 as tasks
from sampan.cri.gen import runtime_pb2 as cri

# Where containerd's CRI plugin keeps its containers.
CONTAINERD_NAMESPACE = "k8s.io"
_TASKS_ONLY = ("topic~=^/tasks/",)


class ContainerEventType(StrEnum):
    CREATED = "created"
    STARTED = "started"
    OOM = "oom"
    EXITED = "exited"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    what: ContainerEventType
    container_id: str  # of a container or of a sandbox
    pod_uid: str = ""  # where the runtime says it
    exit_code: int | None = None
    at: float = 0.0


_CONTAINERD_TOPICS = {
    "/tasks/create": ContainerEventType.CREATED,
    "/tasks/start": ContainerEventType.STARTED,
    "/tasks/oom": ContainerEventType.OOM,
    "/tasks/exit": ContainerEventType.EXITED,
    "/tasks/delete": ContainerEventType.DELETED,
}

_CRI_TYPES = {
    cri.CONTAINER_CREATED_EVENT: ContainerEventType.CREATED,
    cri.CONTAINER_STARTED_EVENT: ContainerEventType.STARTED,
    cri.CONTAINER_STOPPED_EVENT: ContainerEventType.EXITED,
    cri.CONTAINER_DELETED_EVENT: ContainerEventType.DELETED,
}


async def happenings(client: CriClient, runtime_name: str) -> AsyncIterator[ContainerEvent]:
    """What happens from now on, until the connection is lost (a CriError).

    containerd is asked for its native events in every version: 1.6 has no others, and the CRI
    stream of 1.7 is one queue which all subscribers empty, so that after a reconnect the dead
    subscriber still takes its share. CRI-O and others are asked for CRI's events.
    """
    source = _from_containerd(client) if runtime_name == "containerd" else _from_cri(client)
    async for happened in source:
        yield happened
    raise CriUnavailable("the event stream ended", code="UNAVAILABLE", method="events")


async def _from_containerd(client: CriClient) -> AsyncIterator[ContainerEvent]:
    async for envelope in client.containerd_events(CONTAINERD_NAMESPACE, _TASKS_ONLY):
        happened = of_containerd(envelope)
        if happened is not None:
            yield happened


async def _from_cri(client: CriClient) -> AsyncIterator[ContainerEvent]:
    async for event in client.container_events():
        yield of_cri(event)


def of_containerd(envelope: Any) -> ContainerEvent | None:
    """None for what is no news of a container: commands that were exec'ed, and other topics."""
    what = _CONTAINERD_TOPICS.get(envelope.topic)
    if what is None:
        return None
    at = _seconds(envelope.timestamp)
    if what is not ContainerEventType.EXITED:
        event = tasks.TaskEvent.FromString(envelope.event.value)
        return ContainerEvent(what, event.container_id, at=at)
    ended = tasks.TaskExit.FromString(envelope.event.value)
    if ended.id != ended.container_id:
        return None
    return ContainerEvent(
        what,
        ended.container_id,
        exit_code=ended.exit_status,
        at=_seconds(ended.exited_at) or at,
    )


def of_cri(event: Any) -> ContainerEvent:
    what = _CRI_TYPES[event.container_event_type]
    exit_code = None
    if what is ContainerEventType.EXITED:
        for status in event.containers_statuses:
            if status.id == event.container_id:
                exit_code = status.exit_code
    return ContainerEvent(
        what,
        event.container_id,
        pod_uid=event.pod_sandbox_status.metadata.uid,
        exit_code=exit_code,
        at=event.created_at / 1e9,
    )


def _seconds(timestamp: Any) -> float:
    return float(timestamp.seconds + timestamp.nanos / 1e9)
