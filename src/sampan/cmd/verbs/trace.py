"""`sampan trace pod/NAME`: every step of a pod's way, on one time axis.

Job: ask the API for what it remembers, and print it: text, JSON, OTLP, Perfetto, SVG. Reads only.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, name_of
from sampan.api.resources import DEPLOYMENTS, PODS
from sampan.api.rules import pods
from sampan.api.rules.journey import Journey, journey_of, printable, steps_of, way_down_of
from sampan.client import kubeconfig
from sampan.cmd.diagnosis import journey_formats, journey_text
from sampan.cmd.diagnosis.trace_sources import TraceSources
from sampan.cmd.errors import CannotStart, sentence_of
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass

FOLLOW_SECONDS = 0.2
ROOT = "/sampan/v1/trace"
_KINDS = {
    "pod": "pod", "pods": "pod", "po": "pod",
    "deploy": "deployment", "deployment": "deployment", "deployments": "deployment",
    "ns": "namespace", "namespace": "namespace", "namespaces": "namespace",
    "request": "request", "requests": "request",
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
            f"sampan: {printable(asked.what)!r} has no trace: write pod/NAME, deploy/NAME, "
            "ns/NAME (its deletion) or request/ID",
            file=sys.stderr,
        )
        return 2
    try:
        return asyncio.run(_trace(asked, _KINDS[kind], name))
    except BrokenPipeError:
        raise
    except (ApiError, CannotStart, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {printable(sentence_of(error))}", file=sys.stderr)
        return 1


async def _trace(asked: Asked, kind: str, name: str) -> int:
    loaded = kubeconfig.load(asked.kubeconfig, os.environ, str(Path.home()))
    sources = TraceSources(loaded.connection(), SystemClock())
    try:
        match kind:
            case "deployment":
                text = await _rollout(sources, asked, name)
            case "namespace":
                text = await _deletion(sources, asked, name)
            case "request":
                text = await _request(sources, asked, name)
            case _:
                text = await _pod(sources, asked, name)
        print(text)
        if sources.silent:
            print("sampan: not every API server answered: steps are missing", file=sys.stderr)
        return 0
    finally:
        await sources.close()


async def _pod(sources: TraceSources, asked: Asked, name: str) -> str:
    if asked.follow:
        await _follow(sources, asked.namespace, name)
    trace = await _fetch_trace(sources, f"pods/{asked.namespace}/{name}", f"pod {name}")
    text = _text(asked, f"pod/{name}", trace)
    journey = journey_of(trace)
    if asked.output != "text" or journey is None or journey.stopped is None:
        return text
    return "\n".join([text, *await _why(sources, asked.namespace, name)])


async def _why(sources: TraceSources, namespace: str, name: str) -> list[str]:
    """What the cluster says of a pod that does not run; nothing where it is gone."""
    from sampan.cmd.verbs import why  # it loads the scheduler

    try:
        lines = await why.lines_about(
            sources.client, await sources.client.get(PODS, namespace, name)
        )
    except ApiError:
        return []
    return ["", *(printable(line) for line in lines)]


async def _fetch_trace(sources: TraceSources, path: str, what: str) -> Obj:
    """The newest of that name. Raises CannotStart."""
    try:
        found = await sources.fetch(f"{ROOT}/{path}")
    except NotFound as error:
        more = error.message.partition("; ")[2]
        raise CannotStart(
            f"no trace of {what} ({path}): there was none of that name since the server "
            "started, or too many came after it, or the server is none of sampan's (or runs with "
            f"--tracing=false){f': {more}' if more else ''}"
        ) from error
    newest: Obj = found["traces"][0]
    return newest


def _text(asked: Asked, title: str, trace: Obj) -> str:
    journey = journey_of(trace)
    if asked.output == "json":
        return json.dumps(trace, indent=2)
    if journey is None:
        return f"{title}: nothing was recorded"
    match asked.output:
        case "otlp":
            return json.dumps(journey_formats.otlp(trace), indent=2)
        case "perfetto":
            return json.dumps(journey_formats.perfetto(title, journey))
        case "svg":
            return journey_formats.svg(title, journey, everything=asked.everything)
        case _:
            down = way_down_of(trace)
            lines = journey_text.waterfall(title, journey, down, everything=asked.everything)
            return "\n".join(lines)


async def _rollout(sources: TraceSources, asked: Asked, name: str) -> str:
    deployment = await sources.client.get(DEPLOYMENTS, asked.namespace, name)
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    found = await sources.client.list(PODS, asked.namespace, label_selector=selector)
    traces: list[tuple[str, Obj]] = []
    for pod in found.items:
        path = f"pods/{asked.namespace}/{name_of(pod)}"
        try:
            traces.append((name_of(pod), await _fetch_trace(sources, path, "pod")))
        except CannotStart:
            continue  # older than what is remembered
    journeys = [(pod, way) for pod, trace in traces if (way := journey_of(trace)) is not None]
    return _together(asked, f"deployment/{name}", traces, journeys)


async def _deletion(sources: TraceSources, asked: Asked, name: str) -> str:
    """Of a namespace: its own way down, and that of its pods."""
    own = await _fetch_trace(sources, f"namespaces//{name}", f"namespace {name}")
    down = way_down_of(own, "delete namespaces")
    title = f"namespace/{name}"
    if down is None and asked.output == "text":
        return f"{title}: nobody has deleted it since this server started"
    found = await sources.fetch(f"{ROOT}/pods/{name}")
    traces = [(title, own), *((item["name"], item["traces"][0]) for item in found["objects"])]
    pods_down = [(pod, way) for pod, trace in traces[1:] if (way := way_down_of(trace)) is not None]
    if asked.output == "text" and down is not None:
        lines = journey_text.way_down(title, down, everything=asked.everything)
        if pods_down:
            lines += ["", *journey_text.rollout("Its pods", pods_down, "deleted")]
        return "\n".join(lines)
    return _together(asked, title, traces, [*([(title, down)] if down else ()), *pods_down])


async def _request(sources: TraceSources, asked: Asked, id_: str) -> str:
    trace = await _fetch_trace(sources, f"requests/{id_}", f"request {id_}")
    journey = journey_of(trace)
    if asked.output != "text" or journey is None:
        return _text(asked, f"request/{id_}", trace)
    whole = steps_of(trace)[0]
    facts = dict(whole.facts)
    who = f" by {facts['user']}" if "user" in facts else ""
    head = f"request/{printable(id_)}: {whole.name}{who}, "
    head += f"{journey_text.milliseconds(journey.seconds)}"
    lines = journey_text.chart(journey.steps, journey, journey.critical, everything=True)
    refusal = ["", f"It was refused: {facts['error']}"] if "error" in facts else []
    return "\n".join([head, "", *lines, *refusal])


def _together(
    asked: Asked,
    title: str,
    traces: Sequence[tuple[str, Obj]],
    journeys: Sequence[tuple[str, Journey]],
) -> str:
    """Many objects in one answer."""
    match asked.output:
        case "json":
            return json.dumps({"traces": [{"name": name, **item} for name, item in traces]})
        case "otlp":
            exported = [journey_formats.otlp(trace)["resourceSpans"] for _, trace in traces]
            return json.dumps({"resourceSpans": [item for group in exported for item in group]})
        case "perfetto":
            return json.dumps(journey_formats.perfetto(title, journey_text.side_by_side(journeys)))
        case "svg":
            return journey_formats.svg(
                title, journey_text.side_by_side(journeys), everything=asked.everything
            )
        case _:
            return "\n".join(journey_text.rollout(title, journeys))


async def _follow(sources: TraceSources, namespace: str, name: str) -> None:
    """Each step as it comes, until the pod is Ready or over."""
    told = 0
    while True:
        pod = await sources.client.get(PODS, namespace, name)
        trace = await _fetch_trace(sources, f"pods/{namespace}/{name}", f"pod {name}")
        spans = trace["spans"]
        for span in spans[told:]:
            if span["parent"] < 0:
                took = journey_text.milliseconds(span["ended"] - span["began"])
                said = f"{printable(span['lane'])}: {printable(span['name'])}"
                print(f"{took:>10}  {said}", flush=True)
        told = len(spans)
        if pods.is_ready(pod) or pods.is_terminal(pod):
            print()
            return
        await asyncio.sleep(FOLLOW_SECONDS)
