"""The lives of small pods: what was done to each, every status that a watcher saw, its events.

Job: live them again on a cluster, all at once, and say where they differ from those on record.
Invariant: an action is taken when the pod has come to where it was on record, not by the clock.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of, meta_of, name_of, uid_of
from sampan.api.resources import EVENTS, PODS
from sampan.client.contract import Client
from sampan.core.tasks import all_of

Status = dict[str, Any]
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_ID = re.compile(r"[0-9a-f]{64}")
_EVENT_LOOKS = 16
DEBUGGER = {"name": "dbg", "command": ["sh", "-c", "sleep 2"]}


def seen_status(kind: str, pod: Obj) -> Status:
    """One event of a watch, without what is another one's in another run."""
    status, meta = pod.get("status") or {}, meta_of(pod)
    seen: Status = {
        "type": kind,
        **{key: status[key] for key in ("phase", "qosClass", "reason", "message") if key in status},
        "conditions": [
            {
                key: condition[key]
                for key in ("type", "status", "reason", "message")
                if condition.get(key)
            }
            for condition in status.get("conditions") or ()
        ],
    }
    for key in _STATUSES:
        if status.get(key):
            seen[key] = {statu["name"]: _container(statu) for statu in status[key]}
    if meta.get("deletionGracePeriodSeconds") is not None:
        seen["deleting"] = meta["deletionGracePeriodSeconds"]
    seen["ips"] = bool(status.get("podIPs"))
    return seen


def _container(status: Obj) -> Status:
    kept = ("ready", "started", "restartCount", "image", "allocatedResources", "resources")
    seen = {key: status[key] for key in kept if key in status}
    for key in ("state", "lastState"):
        if status.get(key):
            seen[key] = {
                name: {
                    item: what[item] for item in ("reason", "exitCode", "message") if item in what
                }
                for name, what in status[key].items()
            }
    return seen


def seen_event(event: Obj) -> Status:
    about = event["involvedObject"]
    return {
        "type": event["type"],
        "reason": event["reason"],
        "message": event["message"],
        "from": (event.get("source") or {}).get("component") or event.get("reportingComponent"),
        "fieldPath": about.get("fieldPath"),
    }


class Life:
    """One pod, as it is seen."""

    def __init__(
        self, name: str, recorded: Obj, namespace: str, merged: frozenset[int] = frozenset()
    ) -> None:
        """`merged`: the statuses on record, by number, that another pace does not show."""
        self.name, self.recorded, self.merged = name, recorded, merged
        self._namespace = namespace
        self.statuses: list[Status] = []
        self.events: list[Status] = []
        self.uid = self.node = ""
        self._waiting = list(recorded["actions"])

    def see(self, kind: str, pod: Obj) -> None:
        self.uid = uid_of(pod)
        self.node = (pod.get("spec") or {}).get("nodeName") or self.node
        seen = self._masked(seen_status(kind, pod))
        if not self.statuses or self.statuses[-1] != seen:
            self.statuses.append(seen)

    def take_event(self, event: Obj) -> None:
        self.events.append(self._masked(seen_event(event)))

    def due(self) -> list[Any] | None:
        """The action whose turn has come."""
        if not self._waiting or not self.statuses:
            return None
        before = self.statuses_before_action()
        if before is not None and {**self.statuses[-1], "type": ""} != {**before, "type": ""}:
            return None
        found: list[Any] = self._waiting.pop(0)
        return found

    def statuses_before_action(self) -> Status | None:
        """How the pod was on record when the first thing was done to it."""
        shown: list[Status] = self.recorded["statuses"]
        kind = self.recorded["actions"][0][1]
        if kind == "delete":
            at = next(n for n, item in enumerate(shown) if "deleting" in item)
            return shown[at - 1]
        if kind == "ungate":
            return shown[0]
        return next(item for item in shown if item["phase"] == "Running")

    def is_over(self) -> bool:
        """It has shown all that is on record, in that order."""
        return not self._waiting and not self.missing()

    def has_all_events(self) -> bool:
        return all(event in self.events for event in self.recorded["events"])

    def missing(self) -> list[Status]:
        """What is on record and was not seen, but for what another pace does not show."""
        shown = self.recorded["statuses"]
        kept = [item for n, item in enumerate(shown) if n not in self.merged]
        return missing(kept, self.statuses)

    def _masked(self, seen: Status) -> Status:
        def mask(value: Any) -> Any:
            if isinstance(value, str):
                return self._mask(value)
            if isinstance(value, dict):
                return {key: mask(item) for key, item in value.items()}
            return [mask(item) for item in value] if isinstance(value, list) else value

        masked: Status = mask(seen)
        return masked

    def _mask(self, text: str) -> str:
        text = text.replace(self._namespace, "NS")
        if self.node:
            text = text.replace(f"to {self.node}", "to NODE")
        if self.uid:
            text = text.replace(self.uid, "UID")
        return _ID.sub("ID", text)


def missing(recorded: Sequence[Status], seen: Sequence[Status]) -> list[Status]:
    """What is on record and was not seen, in this order."""
    at, lacking = 0, []
    for status in recorded:
        for later in range(at, len(seen)):
            if seen[later] == status:
                at = later + 1
                break
        else:
            lacking.append(status)
    return lacking


def words(statuses: Sequence[Status]) -> set[str]:
    """In which words phases, conditions and containers are told of. Another pace may show other
    moments of a life, but in no other words."""
    found = set()
    for status in statuses:
        found.add(f"{status['type']} {status['phase']} {status.get('reason', '')}")
        for condition in status["conditions"]:
            found.add(f"{condition['type']} {condition['status']} {condition.get('reason', '')}")
        for container in (item for kind in _STATUSES for item in status.get(kind, {}).values()):
            for key in ("state", "lastState"):
                for state, what in container.get(key, {}).items():
                    found.add(f"{key} {state} {what.get('reason', '')}")
    return found


class Replay:
    def __init__(self, client: Client, namespace: str, lives: Sequence[Life]) -> None:
        self._client, self._namespace = client, namespace
        self._lives = {life.name: life for life in lives}
        self._changed = asyncio.Event()

    async def run(self, seconds: float) -> None:
        """Until every pod has shown what is on record, for at most so long."""
        listed = await self._client.list(PODS, self._namespace)
        watching = asyncio.get_running_loop().create_task(self._watch(listed.revision))
        try:
            await all_of(self._make(life) for life in self._lives.values())
            async with asyncio.timeout(seconds):
                await self._live()
        except TimeoutError:
            pass  # what is missing is said by the comparison
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        await self._take_events()

    async def _take_events(self) -> None:
        """They are written a little later than what they tell of."""
        for _ in range(_EVENT_LOOKS):
            for life in self._lives.values():
                life.events.clear()
            for event in (await self._client.list(EVENTS, self._namespace)).items:
                life_of = self._lives.get(event["involvedObject"]["name"])
                if life_of is not None:
                    life_of.take_event(event)
            if all(life.has_all_events() for life in self._lives.values()):
                return
            await asyncio.sleep(0.5)

    async def _make(self, life: Life) -> None:
        pod = {"metadata": {"name": life.name}, "spec": copy_of(life.recorded["spec"])}
        await self._client.create(PODS, pod, self._namespace)

    async def _watch(self, revision: int) -> None:
        while True:
            try:
                async for event in self._client.watch(PODS, self._namespace, revision=revision):
                    revision = int(meta_of(event.object)["resourceVersion"])
                    life = self._lives.get(name_of(event.object))
                    if event.type != "BOOKMARK" and life is not None:
                        life.see(event.type, event.object)
                        self._changed.set()
            except ApiError:
                await asyncio.sleep(0.1)

    async def _live(self) -> None:
        while not all(life.is_over() for life in self._lives.values()):
            self._changed.clear()
            for life in self._lives.values():
                action = life.due()
                if action is not None:
                    await self._act(life, action[1], action[2])
            await self._changed.wait()

    async def _act(self, life: Life, what: str, how: Any) -> None:
        client, where, name = self._client, self._namespace, life.name
        first = life.recorded["spec"]["containers"][0]
        match what:
            case "delete":
                await client.delete(PODS, where, name, grace_seconds=how)
            case "ungate":
                await client.patch(
                    PODS, where, name, {"spec": {"schedulingGates": None}}, patch_type="merge"
                )
            case "resize":
                containers = [{"name": first["name"], "resources": how}]
                patch = {"spec": {"containers": containers}}
                await client.patch(PODS, where, name, patch, subresource="resize")
            case "ephemeral":
                debugger = {**DEBUGGER, "image": first["image"]}
                patch = {"spec": {"ephemeralContainers": [debugger]}}
                await client.patch(PODS, where, name, patch, subresource="ephemeralcontainers")
            case "image":
                patch = {"spec": {"containers": [{"name": first["name"], "image": how}]}}
                await client.patch(PODS, where, name, patch)
            case _:
                raise AssertionError(what)
