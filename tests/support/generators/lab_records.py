"""Records of the lab, as a trial prints them.

Job: a small one with every fate a pod can have.
"""

from typing import Any

from sampan.api.objects import Obj


def life(name: str, **more: Any) -> Obj:
    return {
        "name": name, "namespace": "default", "stream": "s", "requests": {"cpu": 1.0},
        "priority": 0, "arrived": 0.0, "scheduled": None, "node": "", "started": None,
        "ended": None, "outcome": "Pending", "why_pending": "", "preempted_by": "", **more,
    }  # fmt: skip


def record(why: str = "Insufficient cpu") -> Obj:
    placed = {"scheduled": 10.0, "started": 10.0, "outcome": "Succeeded"}
    return {
        "seed": 7,
        "seconds": 100.0,
        "pods": [
            life("a", **{**placed, "scheduled": 0.0}, node="n-0", ended=50.0),
            life("b", **{**placed, "scheduled": 20.0}, node="n-0", ended=70.0),
            life("c", **{**placed, "outcome": "Preempted"}, node="n-1", ended=50.0,
                 preempted_by="a"),
            life("d", why_pending=why),
        ],
        "nodes": [
            {"name": "n-0", "kind": "large", "zone": "a", "allocatable": {"cpu": 2.0},
             "pods": 2, "held": {"cpu": 100.0}},
            {"name": "n-1", "kind": "large", "zone": "b", "allocatable": {"cpu": 2.0},
             "pods": 1, "held": {}},
        ],
        "moments": [
            {"at": 0.0, "used": {"cpu": 1.0}, "pending": 1, "running": 1, "nodes": 2},
            {"at": 20.0, "used": {"cpu": 2.0}, "pending": 1, "running": 2, "nodes": 2},
            {"at": 70.0, "used": {"cpu": 0.0}, "pending": 1, "running": 0, "nodes": 2},
        ],
        "refused": [],
        "plugins": {"NodeName Filter": (10, 0.001), "NodeResourcesFit Filter": (10, 0.004)},
    }  # fmt: skip
