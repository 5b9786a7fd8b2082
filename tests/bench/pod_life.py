"""A pod's life through the API, as a client over HTTPS sees it, beside the same through raw CRI."""

import asyncio
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sampan.api.objects import Obj, name_of
from sampan.api.resources import PODS
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.kubelet.images.reference import PAUSE_IMAGE
from tests.bench.raw_cri import PodLife, raw_pod_life

_SECONDS = 30.0
NOTHING_MORE: Obj = {}


@dataclass(frozen=True, slots=True)
class ApiLife:
    """Seconds from the request to what a watch shows."""

    to_running: float
    to_gone: float


async def both_lives(
    client: Client, floor_socket: str, directory: Path, clock: Clock, rounds: int
) -> tuple[list[ApiLife], list[PodLife]]:
    """Turn by turn, so that both meet the same minute of the machine."""
    through_api: list[ApiLife] = []
    raw: list[PodLife] = []
    for number in range(rounds):
        raw += await raw_pod_life(floor_socket, directory, clock, rounds=1)
        through_api.append(await api_life(client, f"bench-{number}", clock))
    return through_api, raw


async def api_life(
    client: Client, name: str, clock: Clock, more: Obj = NOTHING_MORE, seconds: float = _SECONDS
) -> ApiLife:
    """`more`: of the pod's spec."""
    listed = await client.list(PODS, "default")
    marks = [clock.monotonic()]
    async with asyncio.timeout(seconds):
        await client.create(PODS, _pod(name, more), "default")
        async for event in client.watch(PODS, "default", revision=listed.revision):
            if name_of(event.object) != name:
                continue
            if event.type == "DELETED":
                marks.append(clock.monotonic())
                break
            if len(marks) == 1 and _is_running(event.object):
                marks.append(clock.monotonic())
                # Not at once: a deletion right behind the start would measure something else.
                await asyncio.sleep(0.05)
                marks.append(clock.monotonic())
                await client.delete(PODS, "default", name)
    created, running, deleted, gone = marks
    return ApiLife(to_running=running - created, to_gone=gone - deleted)


def p90(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=10)[-1] if len(values) > 1 else values[0]


def _is_running(pod: Obj) -> bool:
    status = pod.get("status") or {}
    statuses = status.get("containerStatuses") or []
    return status.get("phase") == "Running" and all("running" in one["state"] for one in statuses)


def _pod(name: str, more: Obj) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": PAUSE_IMAGE, "imagePullPolicy": "IfNotPresent"}],
            **more,
        },
    }


def steps_of(lives: list[PodLife]) -> str:
    """For the curious: where the floor's time goes, in milliseconds, at the median."""
    names = ("run_sandbox", "create", "start", "stop", "stop_sandbox", "remove")
    middle = len(lives) // 2
    medians = (sorted(getattr(life, name) for life in lives)[middle] for name in names)
    pairs = zip(names, medians, strict=True)
    return ", ".join(f"{name} {seconds * 1000:.0f}" for name, seconds in itertools.chain(pairs))
