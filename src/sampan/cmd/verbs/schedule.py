"""`sampan schedule --dry-run -f pods.yaml`: where pods would go, without creating them.

Job: manifests and a cluster, live or saved (`kubectl get … -o yaml`) → a table. Writes nothing.
"""

import asyncio
import os
import random
import sys
from collections import Counter
from pathlib import Path

import yaml

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, key_of
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.table import table
from sampan.cmd.errors import sentence_of
from sampan.core.clock import SystemClock
from sampan.scheduler.decision.decide import Chosen
from sampan.scheduler.why.what_if import (
    Placed,
    TooManyPods,
    dry_run,
    fetch_objects,
    pods_in,
)


class BadFile(Exception):
    """It cannot be read, or holds no objects."""


def run(files: list[str], *, dry: bool, cluster: str, namespace: str, kubeconfig_path: str) -> int:
    if not dry:
        print("sampan: only --dry-run is there: pods are scheduled when created", file=sys.stderr)
        return 2
    try:
        pods = pods_in([item for file in files for item in objects_in(file)], namespace)
        if not pods:
            raise BadFile("there are no pods in the given files")
        there = _flat(objects_in(cluster)) if cluster else asyncio.run(_live(kubeconfig_path))
        found = dry_run(pods, there, random.Random(0))
    except (BadFile, TooManyPods, ApiError, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {sentence_of(error)}", file=sys.stderr)
        return 1
    print("\n".join(answer(found)))
    return 0 if all(isinstance(match_.decision, Chosen) for match_ in found) else 3


def answer(found: list[Placed]) -> list[str]:
    """What is printed, line by line. Pure."""
    rows = []
    for match_ in found:
        match match_.decision:
            case Chosen(node, points, feasible):
                rows.append(
                    (key_of(match_.pod), node, f"{points} points, {feasible} node(s) would do")
                )
            case _:
                rows.append((key_of(match_.pod), "-", match_.message))
    nodes = Counter(node for _, node, _ in rows if node != "-")
    waiting = sum(node == "-" for _, node, _ in rows)
    summary = f"{len(rows) - waiting} of {len(rows)} pods would be placed, on {len(nodes)} node(s)."
    return [*table(("POD", "NODE", "WHY"), rows), "", summary]


def objects_in(file: str) -> list[Obj]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        documents = list(yaml.safe_load_all(text))
    except OSError as error:
        raise BadFile(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadFile(f"{file} is no YAML: {error}") from error
    found = [document for document in documents if document is not None]
    if any(not isinstance(match_, dict) or "kind" not in match_ for match_ in found):
        raise BadFile(f"{file} holds something that is no Kubernetes object")
    return found


def _flat(objects: list[Obj]) -> list[Obj]:
    found: list[Obj] = []
    for item in objects:
        found += _flat(item.get("items") or []) if str(item["kind"]).endswith("List") else [item]
    return found


async def _live(path: str) -> list[Obj]:
    connection = kubeconfig.load(path, os.environ, str(Path.home())).connection()
    client = rest.connect(connection, clock=SystemClock())
    try:
        return await fetch_objects(client)
    finally:
        await client.close()
