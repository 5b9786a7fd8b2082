from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp

from sampan.cri.events import ContainerEvent, of_containerd, of_cri
from sampan.cri.events import ContainerEventType as Type
from sampan.cri.gen import containerd_events_pb2 as containerd
from sampan.cri.gen import containerd_tasks_pb2 as tasks
from sampan.cri.gen import runtime_pb2 as cri


def envelope(topic, event):
    return containerd.Envelope(
        timestamp=Timestamp(seconds=50),
        namespace="k8s.io",
        topic=topic,
        event=Any(value=event.SerializeToString()),
    )


def test_an_exit_carries_code_and_time():
    """[R2]"""
    ended = tasks.TaskExit(
        container_id="c1",
        id="c1",
        exit_status=137,
        exited_at=Timestamp(seconds=100, nanos=500_000_000),
    )
    happened = of_containerd(envelope("/tasks/exit", ended))
    assert happened == ContainerEvent(Type.EXITED, "c1", exit_code=137, at=100.5)


def test_the_end_of_an_exec_is_no_news_of_the_container():
    ended = tasks.TaskExit(container_id="c1", id="exec-7", exit_status=1)
    assert of_containerd(envelope("/tasks/exit", ended)) is None


def test_other_task_events_name_the_container():
    event = tasks.TaskEvent(container_id="c1")
    assert of_containerd(envelope("/tasks/oom", event)) == ContainerEvent(Type.OOM, "c1", at=50.0)
    assert of_containerd(envelope("/tasks/start", event)) == ContainerEvent(
        Type.STARTED, "c1", at=50.0
    )
    assert of_containerd(envelope("/tasks/exec-added", event)) is None


def test_an_event_of_cri_brings_the_pod_and_the_exit_code_along():
    event = cri.ContainerEventResponse(
        container_id="c1",
        container_event_type=cri.CONTAINER_STOPPED_EVENT,
        created_at=2_000_000_000,
        pod_sandbox_status=cri.PodSandboxStatus(metadata=cri.PodSandboxMetadata(uid="u1")),
        containers_statuses=[
            cri.ContainerStatus(id="c0", exit_code=3),
            cri.ContainerStatus(id="c1", exit_code=7),
        ],
    )
    assert of_cri(event) == ContainerEvent(Type.EXITED, "c1", "u1", exit_code=7, at=2.0)
