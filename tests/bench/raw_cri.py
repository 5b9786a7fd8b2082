"""The floor under every figure: the same pod through nothing but the runtime's own calls.

Job: time RunPodSandbox + CreateContainer + StartContainer, and StopContainer + StopPodSandbox +
    RemoveContainer + RemovePodSandbox, with the messages that the node agent would send.
"""

import itertools
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.kubelet.container_spec import generate
from sampan.kubelet.contracts.runtime import Runtime
from sampan.kubelet.images.reference import PAUSE_IMAGE
from sampan.kubelet.runtime.cri_runtime import CriRuntime

_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class PodLife:
    """Seconds."""

    run_sandbox: float
    create: float
    start: float
    stop: float
    stop_sandbox: float
    remove: float

    @property
    def to_running(self) -> float:
        return self.run_sandbox + self.create + self.start

    @property
    def to_gone(self) -> float:
        return self.stop + self.stop_sandbox + self.remove


def pause_pod(number: int, namespace: str = "default") -> Obj:
    """What `kubectl run --image=PAUSE_IMAGE` makes, as the node agent sees it."""
    name = f"raw-{number}"
    container = {
        "name": name,
        "image": PAUSE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
    }
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"raw-{number}-uid"},
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "securityContext": {},
        },
    }


async def raw_pod_life(
    socket_path: str, directory: Path, clock: Clock, *, rounds: int = 20
) -> list[PodLife]:
    """One pod after the other; the pause image must be there."""
    runtime = CriRuntime(socket_path, clock)
    try:
        await runtime.connect(_CONNECT_SECONDS)
        return [await pod_life(runtime, directory, clock, number) for number in range(rounds)]
    finally:
        await runtime.close()


def median(lives: Iterable[PodLife]) -> PodLife:
    """Each step's own median (their sum is not the median of the sums, but near it)."""
    lives = list(lives)
    return PodLife(
        **{
            field.name: statistics.median(getattr(life, field.name) for life in lives)
            for field in fields(PodLife)
        }
    )


async def pod_life(runtime: Runtime, directory: Path, clock: Clock, number: int) -> PodLife:
    """By nothing but the calls that it takes; the pause image must be there."""
    node = generate.NodeFacts(
        "raw", root_dir=str(directory / "kubelet"), log_root=str(directory / "logs")
    )
    pod = pause_pod(number)
    image = await runtime.image(PAUSE_IMAGE)
    assert image is not None, f"{PAUSE_IMAGE} is not on the node"
    sandbox = generate.sandbox_spec(pod, attempt=0, node=node)
    container = generate.container_spec(
        pod,
        pod["spec"]["containers"][0],
        generate.ContainerContext(
            attempt=0,
            image_id=image.id,
            image=image,
            objects={},
            pod_ips=(),
            node=node,
        ),
    )
    marks = [clock.monotonic()]
    sandbox_id = await runtime.run_sandbox(sandbox)
    marks.append(clock.monotonic())
    container_id = await runtime.create_container(sandbox_id, container, sandbox)
    marks.append(clock.monotonic())
    await runtime.start_container(container_id)
    marks.append(clock.monotonic())
    await runtime.stop_container(container_id, 30)
    marks.append(clock.monotonic())
    await runtime.stop_sandbox(sandbox_id)
    marks.append(clock.monotonic())
    await runtime.remove_container(container_id)
    await runtime.remove_sandbox(sandbox_id)
    marks.append(clock.monotonic())
    steps = [end - begin for begin, end in itertools.pairwise(marks)]
    return PodLife(*steps)
