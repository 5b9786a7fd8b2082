"""`sampan why pod/NAME`: why a pod is Pending, or not Ready, or where it is.

Job: ask a live cluster through its API, decide as the scheduler would, print tables. Reads only.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sampan.api.errors import ApiError, Forbidden, NotFound
from sampan.api.objects import Obj, uid_of
from sampan.api.resources import PODS
from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from sampan.scheduler.decide import Chosen
from sampan.scheduler.rows import node_of
from sampan.scheduler.what_if import Explained, explained, fetched

MOST_NAMES = 5


def run(what: str, namespace: str, kubeconfig_path: str) -> int:
    kind, _, name = what.rpartition("/")
    if kind not in ("", "pod", "pods", "po") or not name:
        print(f"sampan: {what!r} is no pod: write pod/NAME", file=sys.stderr)
        return 2
    try:
        return asyncio.run(_why(name, namespace, kubeconfig_path))
    except (ApiError, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1


async def _why(name: str, namespace: str, kubeconfig_path: str) -> int:
    loaded = kubeconfig.load(kubeconfig_path, os.environ, str(Path.home()))
    client = rest.connect(loaded.connection(), clock=SystemClock())
    try:
        pod = await client.get(PODS, namespace, name)
        lines = answer(pod, explained(pod, await fetched(client)))
        record = await _record(client, namespace, name)
        if record is not None and record.get("uid") == uid_of(pod) and "chosen" in record:
            lines += ["", *remembered(record)]
        print("\n".join(lines))
    finally:
        await client.close()
    return 0


async def _record(client: rest.RestClient, namespace: str, name: str) -> Obj | None:
    """What the scheduler remembers; None where it has forgotten, or is none of sampan's."""
    try:
        return await client.get_path(f"/sampan/v1/why/{namespace}/{name}")
    except (NotFound, Forbidden):
        return None


def remembered(record: Obj) -> list[str]:
    """The decision as it was taken. Pure."""
    chosen = record["chosen"]
    lines = [
        f"Decided at {record['when']}: {chosen['node']}, with {chosen['points']} points, of "
        f"{chosen['feasibleNodes']} node(s) that would have done."
    ]
    if record.get("best"):
        best = [(one["node"], one["points"], one["byRule"]) for one in record["best"]]
        lines += _scores(best)
    return lines


def answer(pod: Obj, found: Explained) -> list[str]:
    """What is printed, line by line. Pure."""
    meta = pod["metadata"]
    title = f"pod {meta.get('namespace')}/{meta.get('name')}"
    if node := node_of(pod):
        lines = [f"{title} is on {node}.", *_troubles(pod)]
        lines += ["", "Were it to be placed now:"]
    else:
        lines = [f"{title} is Pending and has no node."]
        said = _condition(pod)
        if said:
            lines.append(f"The scheduler said: {said}")
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
        helping = [(one.text, str(one.nodes)) for one in found.changes]
        lines += ["", *table(("CHANGE THAT WOULD HELP", "FITS ON NODES"), helping)]
    elif not isinstance(found.decision, Chosen) and not node_of(pod):
        lines += ["", "No single change of the pod would let it fit."]
    return lines


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]


def _scores(best: Sequence[tuple[str, int, Mapping[str, int]]]) -> list[str]:
    rules = list(dict.fromkeys(rule for _, _, points in best for rule in points))
    rows = [
        (node, str(total), *(str(points.get(rule, 0)) for rule in rules))
        for node, total, points in best
    ]
    return table(("BEST NODES", "POINTS", *rules), rows)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")


def _condition(pod: Obj) -> str:
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return str(one.get("message") or one.get("reason") or "")
    return ""


def _troubles(pod: Obj) -> list[str]:
    """Conditions that are not met, containers that wait or came back."""
    status = pod.get("status") or {}
    lines = [
        f"{one['type']} is {one['status']}: "
        f"{one.get('reason', '')} {one.get('message', '')}".rstrip()
        for one in status.get("conditions") or ()
        if one.get("status") != "True" and one.get("type") != "DisruptionTarget"
    ]
    for one in (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ):
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting:
            why = f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()
            lines.append(f"container {one['name']} waits: {why}")
        ended = (one.get("lastState") or {}).get("terminated") or {}
        if one.get("restartCount"):
            lines.append(
                f"container {one['name']} was restarted {one['restartCount']} time(s); "
                f"the last run ended with {ended.get('exitCode')} ({ended.get('reason', '')})"
            )
    return lines
