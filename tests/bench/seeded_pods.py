"""Pods that run already, written into the store of a stopped cluster.

Job: one running pod of it, again and again, on all of its simulated nodes: what comes after a
    hundred thousand creates, without them.
"""

import json
import random
import re
import sqlite3
import uuid
from functools import partial
from pathlib import Path

from sampan.api.objects import Obj, seconds_of, time_text

PREFIX = "/registry/pods/default/"
PER_WRITE = 5000
PER_SECOND = 250  # created, as their times say
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_INSERT = "INSERT INTO log VALUES (?, ?, ?, 0, 0, NULL, ?, NULL)"


def seed(store: Path, count: int, nodes: int, apps: int) -> None:
    """`pod-NNNNNN`, as many as wanted besides those that are there, spread evenly."""
    rng = random.Random(1)
    with sqlite3.connect(store) as database:
        (revision,) = database.execute("SELECT max(revision) FROM log").fetchone()
        key, value = database.execute(
            "SELECT key, value FROM log WHERE key LIKE ? AND deleted = 0 ORDER BY revision DESC",
            (f"{PREFIX}%",),
        ).fetchone()
        pattern: Obj = json.loads(value)
        assert pattern["status"]["phase"] == "Running", key
        width = len(str(nodes - 1))
        for first in range(0, count, PER_WRITE):
            rows = []
            for number in range(first, min(first + PER_WRITE, count)):
                revision += 1
                pod = _pod(pattern, number, nodes, width, apps, rng)
                text = json.dumps(pod, separators=(",", ":"), ensure_ascii=False)
                text = _TIME.sub(partial(_later, number // PER_SECOND), text)
                address = pattern["status"]["podIP"], pod["status"]["podIP"]
                text = text.replace(*(f'\\"{each}\\"' for each in address))  # whose field it is
                rows.append((revision, PREFIX + pod["metadata"]["name"], revision, text.encode()))
            database.executemany(_INSERT, rows)
    database.close()


def _later(seconds: int, found: re.Match[str]) -> str:
    """As many were created one after the other."""
    return time_text(seconds_of(found[0]) + seconds)


def _pod(pattern: Obj, number: int, nodes: int, width: int, apps: int, rng: random.Random) -> Obj:
    node, place = number % nodes, number // nodes + 2
    meta = {
        **pattern["metadata"],
        "name": f"pod-{number:06d}",
        "uid": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "labels": {"app": f"app-{number % apps}"},
    }
    address, status = f"10.{node // 256 % 256}.{node % 256}.{place}", pattern["status"]
    host = f"172.16.{(node + 1) // 256}.{(node + 1) % 256}"
    containers = [
        {**each, "containerID": f"simulated://{rng.getrandbits(256):064x}"}
        for each in status["containerStatuses"]
    ]
    told = {
        **status, "podIP": address, "podIPs": [{"ip": address}], "hostIP": host,
        "hostIPs": [{"ip": host}], "containerStatuses": containers,
    }  # fmt: skip
    spec = {**pattern["spec"], "nodeName": f"node-{node:0{width}d}"}
    return {**pattern, "metadata": meta, "spec": spec, "status": told}
