"""What of a pod and its events is compared between runs: all but what is another one's each time.

Job: a watched pod as a small object, an event as a small object, both masked.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from sampan.api.objects import Obj, meta_of, uid_of

Look = dict[str, Any]
_OF_A_POD = ("phase", "qosClass", "reason", "message", "observedGeneration", "resources")
_OF_A_CONDITION = ("type", "status", "reason", "message", "observedGeneration")
_OF_A_CONTAINER = (
    "ready", "started", "restartCount", "image", "allocatedResources", "resources", "volumeMounts",
)  # fmt: skip
_OF_A_STATE = ("reason", "message", "exitCode", "signal")
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_MASKS = (
    (r"\b[0-9a-f]{64}\b", "ID"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b", "UID"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"\b(10|172|192)\.\d+\.\d+\.\d+\b", "IP"),
    (r"(?<=kube-api-access-)\w{5}\b", "X"),
    (r"in [\d.]+m?s \([\d.]+m?s including waiting\)\. Image size: \d+ bytes", "in T"),
    (r"IP:\d{5}->", "IP:PORT->"),
    (r"(/[^/\s\"\\]+)+/kubelet/(?=(pods|seccomp)/)", "KUBELET/"),
    (r"(used|capacity): \d+", r"\1: N"),
    (r"(?<= )back-off \S+ (?=restarting)", "back-off T "),
)


def look(kind: str, pod: Obj, node: str) -> Look:
    """One event of a watch."""
    status, meta = pod.get("status") or {}, meta_of(pod)
    seen = {"type": kind, **_kept(status, _OF_A_POD)}
    seen["conditions"] = [_kept(one, _OF_A_CONDITION) for one in status.get("conditions") or ()]
    for key in _STATUSES:
        if status.get(key):
            seen[key] = [{"name": name_of_status(one), **_container(one)} for one in status[key]]
    if meta.get("deletionTimestamp"):
        seen["deleting"] = meta.get("deletionGracePeriodSeconds")
    seen["ips"] = bool(status.get("podIPs"))
    masked: Look = mask(seen, pod, node)
    return masked


def look_at_event(event: Obj, pod: Obj, node: str) -> Look:
    source = event.get("source") or {}
    seen = {
        **_kept(event, ("type", "reason", "message")),
        "from": source.get("component") or event.get("reportingComponent"),
        "fieldPath": event["involvedObject"].get("fieldPath", ""),
    }
    masked: Look = mask(seen, pod, node)
    return masked


def mask(value: Any, pod: Obj, node: str) -> Any:
    text = json.dumps(value)
    for pattern, shown in _MASKS:
        text = re.sub(pattern, shown, text)
    text = text.replace(meta_of(pod)["namespace"], "NS").replace(uid_of(pod), "UID")
    text = re.sub(rf"\b{re.escape(node)}\b", "NODE", text) if node else text
    return json.loads(text)


def name_of_status(status: Obj) -> str:
    found: str = status["name"]
    return found


def words(looks: Sequence[Look]) -> set[str]:
    """In which words phases, conditions and containers are told of. Another pace may show other
    moments of a life, but in no other words."""
    found = set()
    for seen in looks:
        found.add(f"{seen['type']} {seen.get('phase')} {seen.get('reason', '')}")
        for condition in seen["conditions"]:
            found.add(f"{condition['type']} {condition['status']} {condition.get('reason', '')}")
        for container in (one for key in _STATUSES for one in seen.get(key, ())):
            for key in ("state", "lastState"):
                for state, what in container.get(key, {}).items():
                    word = f"{what.get('reason', '')} {what.get('exitCode', '')}"
                    found.add(f"{container['name']} {key} {state} {word}")
    return found


def is_when(when: str, pod: Obj) -> bool:
    """Has the pod come to where an action is due?"""
    word, _, what = when.partition(":")
    status = pod.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    states = [
        (name_of_status(one), state, how)
        for key in _STATUSES
        for one in status.get(key) or ()
        for state, how in (one.get("state") or {}).items()
    ]
    match word:
        case "ready":
            return bool(conditions.get("Ready", {}).get("status") == "True")
        case "started":
            mains = {name_of_status(one) for one in status.get("containerStatuses") or ()}
            return bool(mains) and mains <= {
                name for name, state, _ in states if state == "running"
            }
        case "waiting":
            return any(state == "waiting" and how["reason"] == what for _, state, how in states)
        case "running":
            return any(state == "running" and name == what for name, state, _ in states)
        case "ended":
            return any(state == "terminated" and name == what for name, state, _ in states)
        case "phase":
            return bool(status.get("phase") == what)
        case "condition":
            return bool(conditions.get(what, {}).get("status") == "True")
        case "deleting":
            return "deletionTimestamp" in meta_of(pod)
        case "unscheduled":
            return bool(conditions.get("PodScheduled", {}).get("reason") == what)
    raise AssertionError(when)


def _container(status: Obj) -> Look:
    seen = _kept(status, _OF_A_CONTAINER)
    for key in ("state", "lastState"):
        if status.get(key):
            seen[key] = {state: _kept(how, _OF_A_STATE) for state, how in status[key].items()}
    return seen


def _kept(obj: Obj, keys: Sequence[str]) -> Look:
    return {key: obj[key] for key in keys if obj.get(key) not in (None, "")}
