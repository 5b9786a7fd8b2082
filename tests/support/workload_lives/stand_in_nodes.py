"""Nodes and pods that are played: what a kubelet would report, without one.

Job: Node objects with leases and heartbeats; pods that start, end and stop as their annotations
    say. `life`: run (default), ok:SECONDS, fail:SECONDS:CODE, notready, never (stays Pending),
    late:SECONDS (ready so much later), restart:SECONDS:TIMES (its container ends and starts again
    so often, then ends well); `stop`: SECONDS:CODE, how a pod ends when it is deleted (default
    0.3:143).
Invariant: a node that is silent reports nothing of itself nor of its pods, until it is back.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

from sampan.api.objects import Obj, annotations_of, meta_of, name_of, namespace_of, uid_of
from sampan.core.clock import Clock
from sampan.core.tasks import Tasks
from tests.support.workload_lives.transport import JSON_PATCH, MERGE, STRATEGIC, Transport

NODES = ("n0", "n1", "n2")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
BEAT_SECONDS = 8.0
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "110"}
START_SECONDS, GONE_SECONDS = 0.05, 0.1


class StandInNodes:
    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        self._tasks = Tasks("stand-in nodes")
        self._pods: dict[str, set[str]] = {}  # uid → what was done: started, ended, stopping
        self._silent: set[str] = set()
        self._beating: list[str] = []

    async def join(self, names: Sequence[str] = NODES) -> None:
        """Returns when the nodes are ready and without the taint of new ones."""
        for name in names:
            await self.add(name)
        self._tasks.start("heartbeats", self._beats())
        self._tasks.start("pods", self._follow())
        await self._until_ready(names)

    async def _until_ready(self, names: Sequence[str]) -> None:
        for _ in range(200):
            _, listed = await self._transport.call("GET", "/api/v1/nodes")
            mine = [node for node in listed["items"] if name_of(node) in names]
            if len(mine) == len(names) and not any(map(_is_tainted, mine)):
                return
            await asyncio.sleep(0.2)
        raise AssertionError("the nodes never became ready")

    async def add(self, name: str, **labels: str) -> None:
        meta = {"name": name, "labels": {**_labels(name), **labels}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
        await self._transport.call("POST", "/api/v1/nodes", node)
        await self._beat(name, first=True)
        self._beating.append(name)

    def silence(self, name: str) -> None:
        self._silent.add(name)

    async def return_(self, name: str) -> None:
        self._silent.discard(name)
        await self._beat(name, first=True)
        _, listed = await self._transport.call("GET", "/api/v1/pods")
        for pod in listed["items"]:
            await self._seen("MODIFIED", pod)

    async def remove(self, name: str) -> tuple[int, Obj]:
        """Its Node object; its pods are no longer played."""
        self._beating.remove(name)
        return await self._transport.call("DELETE", f"/api/v1/nodes/{name}")

    async def restore(self) -> None:
        """As they were when they joined, whatever a life did to them."""
        for name in sorted(self._silent):
            await self.return_(name)
        for name in sorted({*self._beating} - {*NODES}):
            await self.remove(name)
        for name in NODES:
            if name not in self._beating:
                await self.add(name)
            at = f"/api/v1/nodes/{name}"
            meta: list[Obj] = [
                {"op": "add", "path": "/metadata/labels", "value": _labels(name)},
                {"op": "add", "path": "/spec/unschedulable", "value": False},
                {"op": "add", "path": "/spec/taints", "value": []},
            ]
            await self._transport.call("PATCH", at, meta, JSON_PATCH)
            status: list[Obj] = [
                {"op": "add", "path": f"/status/{part}", "value": value}
                for part, value in (
                    ("capacity", ROOM), ("allocatable", ROOM), ("images", []), ("conditions", []),
                )
            ]  # fmt: skip
            await self._transport.call("PATCH", f"{at}/status", status, JSON_PATCH)
            await self._beat(name, first=True)
        await self._until_ready(NODES)

    async def stop(self) -> None:
        await self._tasks.stop()

    def _run(self, what: Coroutine[Any, Any, None]) -> None:
        self._tasks.start("pod", what)

    async def _beats(self) -> None:
        while True:
            for name in list(self._beating):
                if name not in self._silent:
                    await self._beat(name)
            await asyncio.sleep(BEAT_SECONDS)

    async def _beat(self, name: str, *, first: bool = False) -> None:
        stamp = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        renewal = {"spec": {"renewTime": stamp}}
        code, _ = await self._transport.call("PATCH", f"{LEASES}/{name}", renewal, MERGE)
        if code == 404:
            spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            made = {**lease, "metadata": {"name": name}, "spec": spec}
            await self._transport.call("POST", LEASES, made)
        ready = {
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
            "lastHeartbeatTime": self._now(),
            **({"lastTransitionTime": self._now()} if first else {}),
        }  # fmt: skip
        status = {"capacity": ROOM, "allocatable": ROOM, "conditions": [ready]}
        path = f"/api/v1/nodes/{name}/status"
        await self._transport.call("PATCH", path, {"status": status}, STRATEGIC)

    def _now(self) -> str:
        return datetime.fromtimestamp(int(self._clock.now()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def _follow(self) -> None:
        async for kind, pod in self._transport.watch("/api/v1/pods"):
            await self._seen(kind, pod)

    async def _seen(self, kind: str, pod: Obj) -> None:
        uid, node = uid_of(pod), pod["spec"].get("nodeName")
        if kind == "DELETED":
            self._pods.pop(uid, None)
        elif node and node not in self._silent and node in self._beating:
            done = self._pods.setdefault(uid, set())
            if meta_of(pod).get("deletionTimestamp"):
                if "stopping" not in done:
                    done.add("stopping")
                    self._run(self._stop(pod, done))
            elif "started" not in done:
                done.add("started")
                self._run(self._start(pod, done))

    async def _start(self, pod: Obj, done: set[str]) -> None:
        life, *words = annotations_of(pod).get("life", "run").split(":")
        if life == "never" or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return
        await asyncio.sleep(START_SECONDS)
        if "stopping" in done:
            return
        ready = life not in ("notready", "late")
        await self._report(pod, "Running", ready, self._running())
        match life:
            case "ok" | "fail":
                await self._end_after(pod, done, words[0], int(words[1]) if life == "fail" else 0)
            case "late":
                await asyncio.sleep(float(words[0]))
                if "stopping" not in done:
                    await self._report(pod, "Running", True, self._running())
            case "restart":
                for number in range(int(words[1])):
                    await asyncio.sleep(float(words[0]))
                    if "stopping" not in done:
                        await self._report(pod, "Running", True, self._running(), number + 1)
                await self._end_after(pod, done, words[0], 0)

    async def _end_after(self, pod: Obj, done: set[str], seconds: str, code: int) -> None:
        await asyncio.sleep(float(seconds))
        if "stopping" not in done:
            done.add("ended")
            await self._report_end(pod, code)

    async def _stop(self, pod: Obj, done: set[str]) -> None:
        seconds, _, code = annotations_of(pod).get("stop", "0.3:143").partition(":")
        phase = (pod.get("status") or {}).get("phase")
        if phase not in ("Succeeded", "Failed") and "ended" not in done:
            await asyncio.sleep(float(seconds))
            if "started" in done:
                await self._report_end(pod, int(code))
            await asyncio.sleep(GONE_SECONDS)
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}}
        await self._transport.call("DELETE", _path(pod), options)

    def _running(self) -> Obj:
        return {"running": {"startedAt": self._now()}}

    async def _report_end(self, pod: Obj, code: int) -> None:
        stamp = self._now()
        ended = {
            "exitCode": code, "reason": "Error" if code else "Completed",
            "startedAt": stamp, "finishedAt": stamp,
        }  # fmt: skip
        await self._report(pod, "Failed" if code else "Succeeded", False, {"terminated": ended})

    async def _report(
        self, pod: Obj, phase: str, ready: bool, state: Obj, restarts: int = 0
    ) -> None:
        if pod["spec"]["nodeName"] in self._silent:
            return
        status = self._status(pod, phase, ready, state)
        for container in status["containerStatuses"]:
            container["restartCount"] = restarts
        body = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self._transport.call("PATCH", f"{_path(pod)}/status", body, STRATEGIC)

    def _status(self, pod: Obj, phase: str, ready: bool, state: Obj) -> Obj:
        number = int(hashlib.sha256(uid_of(pod).encode()).hexdigest(), 16) % 62000
        address = f"10.77.{number // 250}.{1 + number % 250}"
        stamp = self._now()
        containers = [
            {
                "name": container["name"], "image": container["image"], "imageID": "x",
                "ready": ready, "started": ready, "state": state,
            }
            for container in pod["spec"]["containers"]
        ]  # fmt: skip
        conditions = []
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
            follows = kind in ("Ready", "ContainersReady")
            condition = {
                "type": kind, "status": "True" if ready or not follows else "False",
                "lastTransitionTime": stamp,
            }  # fmt: skip
            if follows and phase in ("Succeeded", "Failed"):
                condition["reason"] = "PodCompleted"
            conditions.append(condition)
        return {
            "phase": phase, "podIP": address, "podIPs": [{"ip": address}], "hostIP": "10.0.0.9",
            "startTime": (pod.get("status") or {}).get("startTime") or stamp,
            "containerStatuses": containers, "conditions": conditions,
        }  # fmt: skip


def _labels(name: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": name, "zone": f"z{name[-1]}"}


def _path(pod: Obj) -> str:
    return f"/api/v1/namespaces/{namespace_of(pod)}/pods/{name_of(pod)}"


def _is_tainted(node: Obj) -> bool:
    with contextlib.suppress(KeyError):
        keys = [taint["key"] for taint in node["spec"].get("taints") or ()]
        return any(key.startswith("node.kubernetes.io/not-ready") for key in keys)
    return False
