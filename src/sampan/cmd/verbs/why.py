"""`sampan why KIND/NAME`: why a pod is Pending, or not Ready, or where it is; why others are not
as they should be.

Job: ask a live cluster through its API, decide as the scheduler would, print tables. Reads only.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sampan.api.errors import ApiError, Forbidden, NotFound, UnknownPath
from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.api.resources import EVENTS, PODS
from sampan.api.rules import conditions, pods
from sampan.api.rules.journey import printable
from sampan.api.rules.pods import node_name
from sampan.cli.errors import CliError
from sampan.client import kubeconfig, rest
from sampan.client.contract import Client
from sampan.cmd.cluster.table import table
from sampan.cmd.diagnosis.claims import waiting_for_volumes
from sampan.cmd.diagnosis.finding_lines import finding_lines, finding_objects
from sampan.cmd.diagnosis.pod_diagnosis import Finding, diagnosis
from sampan.cmd.errors import CannotStart, sentence_of
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.decision.decide import Chosen
from sampan.scheduler.model.pod_info import DEFAULT_SCHEDULER, scheduler_of
from sampan.scheduler.why.what_if import Explained, explain, fetch_objects

MOST_NAMES = 5
KINDS = {
    "pod": "pod", "pods": "pod", "po": "pod",
    "service": "service", "services": "service", "svc": "service", "name": "name",
    "ingress": "ingress", "ingresses": "ingress", "ing": "ingress",
}  # fmt: skip


def run(what: str, namespace: str, kubeconfig_path: str, to: str = "", *, as_json: bool) -> int:
    kind, _, name = what.partition("/") if "/" in what else ("pod", "", what)
    if not kind or not name or (to and KINDS.get(kind) != "pod"):
        print(
            f"sampan: {what!r} cannot be asked about: write KIND/NAME (pod/web, deploy/web, "
            "node/a, …), name/HOST, or pod/NAME --to [service/]NAME:PORT",
            file=sys.stderr,
        )
        return 2
    try:
        if kind not in KINDS:
            answered = _about_object(what, namespace, kubeconfig_path)
        elif KINDS[kind] == "pod" and not to:
            answered = asyncio.run(_why(name, namespace, kubeconfig_path))
        else:
            lines = asyncio.run(_why_network(KINDS[kind], name, namespace, kubeconfig_path, to))
            answered = Answer(lines)
    except (ApiError, CannotStart, CliError, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {sentence_of(error)}", file=sys.stderr)
        return 1
    if as_json:
        findings = finding_objects(answered.findings)
        found: Obj = {"object": what, "text": answered.lines, "findings": findings}
        if answered.scheduling is not None:
            found["scheduling"] = answered.scheduling
        print(json.dumps(found, indent=2))
    else:
        lines = "\n".join(answered.lines).expandtabs().split("\n")
        print("\n".join(map(printable, lines)))
    return 0


@dataclass(frozen=True, slots=True)
class Answer:
    lines: list[str]
    findings: Sequence[Finding] = ()
    scheduling: Obj | None = None  # of a pod: where it could go, and what would let it


def _about_object(what: str, namespace: str, path: str) -> Answer:
    from sampan.cmd.verbs import why_object

    sentence, findings = why_object.about(what, namespace, path)
    rest = finding_lines(findings) or ["Nothing is wrong with it, as far as the API says."]
    return Answer([sentence, *rest], findings)


async def _why_network(kind: str, name: str, namespace: str, path: str, to: str) -> list[str]:
    from sampan.cmd.verbs import why_network

    loaded = kubeconfig.load(path, os.environ, str(Path.home()))
    client = rest.connect(loaded.connection(), clock=SystemClock())
    try:
        if kind == "service":
            return await why_network.service(client, namespace, name)
        if kind == "ingress":
            return await why_network.ingress(client, namespace, name)
        if kind == "name":
            return await why_network.host_name(client, namespace, name)
        return await why_network.connection(client, namespace, name, to)
    finally:
        await client.close()


async def _why(name: str, namespace: str, kubeconfig_path: str) -> Answer:
    loaded = kubeconfig.load(kubeconfig_path, os.environ, str(Path.home()))
    client = rest.connect(loaded.connection(), clock=SystemClock())
    try:
        pod = await client.get(PODS, namespace, name)
        answered = await _about_pod(client, pod)
        lines = answered.lines
        record = await _record(client, namespace, name)
        if record is not None and record.get("uid") == uid_of(pod) and "chosen" in record:
            lines += ["", *recorded_decision(record)]
        return Answer(lines, answered.findings, answered.scheduling)
    finally:
        await client.close()


async def lines_about(client: Client, pod: Obj) -> list[str]:
    """What a cluster says about a pod now."""
    return (await _about_pod(client, pod)).lines


async def _about_pod(client: Client, pod: Obj) -> Answer:
    objects = await fetch_objects(client)
    findings = diagnosis(pod, await _events_about(client, pod), _node_in(objects, pod))
    explained = explain(pod, objects)
    lines = answer(pod, explained, findings)
    if not node_name(pod):
        lines += waiting_for_volumes(pod, objects)
    return Answer(lines, findings, scheduling(pod, explained))


async def _events_about(client: Client, pod: Obj) -> list[Obj]:
    """The oldest first; none where they may not be read."""
    selector = f"involvedObject.uid={uid_of(pod)}"
    try:
        found = await client.list(EVENTS, namespace_of(pod), field_selector=selector)
    except Forbidden:
        return []
    return sorted(found.items, key=lambda item: item.get("lastTimestamp") or "")


def _node_in(objects: Sequence[Obj], pod: Obj) -> Obj | None:
    for item in objects:
        if item["kind"] == "Node" and name_of(item) == node_name(pod):
            return item
    return None


async def _record(client: rest.RestClient, namespace: str, name: str) -> Obj | None:
    """What the scheduler remembers; None where it has forgotten, or is none of sampan's."""
    try:
        return await client.get_path(f"/sampan/v1/why/{namespace}/{name}")
    except (NotFound, UnknownPath, Forbidden):
        return None


def recorded_decision(record: Obj) -> list[str]:
    """The decision as it was taken. Pure."""
    chosen = record["chosen"]
    lines = [
        f"Decided at {record['when']}: {chosen['node']}, with {chosen['points']} points, of "
        f"{chosen['feasibleNodes']} node(s) that would have done."
    ]
    if record.get("best"):
        best = [(item["node"], item["points"], item["byRule"]) for item in record["best"]]
        lines += _scores(best)
    return lines


def answer(pod: Obj, found: Explained, findings: Sequence[Finding] = ()) -> list[str]:
    """What is printed, line by line. Pure."""
    meta = pod["metadata"]
    title = f"pod {meta.get('namespace')}/{meta.get('name')}"
    if node := node_name(pod):
        lines = [f"{title} is on {node} and {_state(pod)}.", *finding_lines(findings)]
        if findings:
            return lines  # where else it could go is not what keeps it
        lines += ["", "Were it to be placed now:"]
    else:
        lines = [f"{title} is Pending and has no node."]
        if said := _condition(pod):
            lines.append(f"The scheduler said: {said}")
        elif (scheduler := scheduler_of(pod)) != DEFAULT_SCHEDULER:
            lines.append(
                f"It asks for the scheduler {scheduler}, which has said nothing: does it run?"
            )
    if isinstance(found.decision, Chosen):
        lines.append(f"{found.decision.feasible} node(s) would do.")
    elif found.message:
        lines.append(f"Now: {found.message}")
    if found.refused:
        rows = [
            (rule, str(len(nodes)) if nodes[-1] != "…" else f"{len(nodes) - 1}+", _few(nodes))
            for rule, nodes in found.refused.items()
        ]
        lines += ["", *table(("REFUSED BY", "NODES", "WHICH"), rows)]
    if found.best:
        lines += ["", *_scores(found.best)]
    if found.changes:
        helping = [(change.text, str(change.nodes)) for change in found.changes]
        lines += ["", *table(("CHANGE THAT WOULD HELP", "FITS ON NODES"), helping)]
    elif not isinstance(found.decision, Chosen) and not node_name(pod):
        lines += ["", "No single change of the pod would let it fit."]
    return lines


def scheduling(pod: Obj, found: Explained) -> Obj:
    """The same for a program: who refuses which nodes, what would help, the best ones. Pure."""
    return {
        "node": node_name(pod) or None,
        "said": _condition(pod),
        "message": found.message,
        "feasibleNodes": found.decision.feasible if isinstance(found.decision, Chosen) else 0,
        "refusedBy": [
            {
                "rule": rule,
                "nodes": [name for name in nodes if name != "…"],
                "andMore": nodes[-1] == "…",
            }
            for rule, nodes in found.refused.items()
        ],
        "best": [
            {"node": node, "points": points, "byRule": dict(rules)}
            for node, points, rules in found.best
        ],
        "changes": [{"text": change.text, "nodes": change.nodes} for change in found.changes],
    }


def _scores(best: Sequence[tuple[str, int, Mapping[str, int]]]) -> list[str]:
    rules = list(dict.fromkeys(rule for _, _, points in best for rule in points))
    rows = [
        (node, str(total), *(str(points.get(rule, 0)) for rule in rules))
        for node, total, points in best
    ]
    return table(("BEST NODES", "POINTS", *rules), rows)


def _state(pod: Obj) -> str:
    if pods.is_terminal(pod):
        return f"has {pods.phase(pod).lower()}"
    return "is Ready" if pods.is_ready(pod) else "is not Ready"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")


def _condition(pod: Obj) -> str:
    found = conditions.condition_of(pod, "PodScheduled") or {}
    if found.get("status") != "False":
        return ""
    return str(found.get("message") or found.get("reason") or "")
