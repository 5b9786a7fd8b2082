"""`sampan trace pod/NAME`: every step of a pod's way, on one time axis.

Job: ask the API for what it remembers, and print it: text, JSON, OTLP, Perfetto, SVG. Reads only.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, name_of
from sampan.api.resources import DEPLOYMENTS, PODS
from sampan.api.rules import pods
from sampan.client import kubeconfig, rest
from sampan.cmd.diagnosis import journey_formats, journey_text
from sampan.cmd.diagnosis.journey import Journey, journey_of
from sampan.cmd.errors import CannotStart
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass

FOLLOW_SECONDS = 0.2
_KINDS = {
    "pod": "pods", "pods": "pods", "po": "pods",
    "deploy": "deployments.apps", "deployment": "deployments.apps",
    "deployments": "deployments.apps",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    what: str
    namespace: str
    kubeconfig: str
    output: str = "text"
    follow: bool = False
    everything: bool = False


def run(asked: Asked) -> int:
    kind, _, name = asked.what.partition("/") if "/" in asked.what else ("pod", "", asked.what)
    if kind not in _KINDS or not name:
        print(
            f"sampan: {asked.what!r} has no trace: write pod/NAME or deploy/NAME", file=sys.stderr
        )
        return 2
    try:
        return asyncio.run(_trace(asked, _KINDS[kind], name))
    except BrokenPipeError:
        raise
    except (ApiError, CannotStart, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1


async def _trace(asked: Asked, resource: str, name: str) -> int:
    loaded = kubeconfig.load(asked.kubeconfig, os.environ, str(Path.home()))
    client = rest.connect(loaded.connection(), clock=SystemClock())
    try:
        if resource != "pods":
            print("\n".join(await _rollout(client, asked.namespace, name)))
            return 0
        if asked.follow:
            await _follow(client, asked.namespace, name)
        trace = await _fetch_trace(client, asked.namespace, name)
        print(_text(asked, name, trace))
        return 0
    finally:
        await client.close()


async def _fetch_trace(client: rest.RestClient, namespace: str, name: str) -> Obj:
    """The newest of that name. Raises CannotStart."""
    try:
        found = await client.get_path(f"/sampan/v1/trace/pods/{namespace}/{name}")
    except NotFound as error:
        raise CannotStart(
            f"no trace of pod {namespace}/{name}: there was none of that name since the server "
            "started, or too many came after it, or the server is none of sampan's (or runs with "
            "--tracing=false)"
        ) from error
    newest: Obj = found["traces"][0]
    return newest


def _text(asked: Asked, name: str, trace: Obj) -> str:
    journey, title = journey_of(trace), f"pod/{name}"
    if asked.output == "json":
        return json.dumps(trace, indent=2)
    if journey is None:
        return f"{title}: nothing was recorded"
    match asked.output:
        case "otlp":
            return json.dumps(journey_formats.otlp(title, trace["uid"], journey), indent=2)
        case "perfetto":
            return json.dumps(journey_formats.perfetto(title, journey))
        case "svg":
            return journey_formats.svg(title, journey)
        case _:
            return "\n".join(journey_text.waterfall(title, journey, everything=asked.everything))


async def _rollout(client: rest.RestClient, namespace: str, name: str) -> list[str]:
    deployment = await client.get(DEPLOYMENTS, namespace, name)
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    found = await client.list(PODS, namespace, label_selector=selector)
    journeys: list[tuple[str, Journey]] = []
    for pod in found.items:
        try:
            journey = journey_of(await _fetch_trace(client, namespace, name_of(pod)))
        except CannotStart:
            continue  # older than what is remembered
        if journey is not None:
            journeys.append((name_of(pod), journey))
    return journey_text.rollout(f"deployment/{name}", journeys)


async def _follow(client: rest.RestClient, namespace: str, name: str) -> None:
    """Each step as it comes, until the pod is Ready or over."""
    told = 0
    while True:
        pod = await client.get(PODS, namespace, name)
        spans = (await _fetch_trace(client, namespace, name))["spans"]
        for span in spans[told:]:
            if span["parent"] < 0:
                took = journey_text.milliseconds(span["ended"] - span["began"])
                print(f"{took:>10}  {span['lane']}: {span['name']}", flush=True)
        told = len(spans)
        if pods.is_ready(pod) or pods.is_terminal(pod):
            print()
            return
        await asyncio.sleep(FOLLOW_SECONDS)
