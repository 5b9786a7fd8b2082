"""Builders for tests of plans: owners, their pods, and what follows from a plan.

Job: the objects that a workload controller looks at, in few words.
"""

from collections.abc import Sequence
from typing import Any

from sampan.api.objects import Obj, name_of, time_text
from sampan.api.resources import Resource
from sampan.controllers.actions import (
    Action,
    Create,
    Delete,
    Outcome,
    Patch,
    Plan,
    Record,
    next_step,
)
from sampan.controllers.workloads.pod_control import controller_reference

NOW = 1_700_000_000.0
LABELS = {"app": "web"}


def owner_of(resource: Resource, *, uid: str = "o", status: Obj | None = None, **spec: Any) -> Obj:
    """A workload named `web` with a template and the selector of it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web", "namespace": "ns", "uid": uid, "generation": 1},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
            **spec,
        },
        "status": status or {},
    }


def pod_of(resource: Resource, owner: Obj, name: str, *, ready: bool = True, **words: Any) -> Obj:
    """One of the owner's pods. `words`: node, labels, phase, deleted, ready_since."""
    pod: Obj = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "labels": words.get("labels", LABELS),
            "ownerReferences": [controller_reference(resource, owner)],
            "creationTimestamp": time_text(NOW - 1000),
        },
        "spec": {"nodeName": words.get("node", "n1")},
        "status": {"phase": words.get("phase", "Running"), "conditions": []},
    }
    if ready:
        since = time_text(words.get("ready_since", NOW - 100))
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
        pod["status"]["conditions"].append(condition)
    if words.get("deleted"):
        pod["metadata"]["deletionTimestamp"] = time_text(NOW)
    return pod


def without_trouble(plan: Plan) -> list[Action]:
    """What the plan does after all of its actions went well, to its last step."""
    actions: list[Action] = []
    step: Plan | None = plan
    while step is not None:
        step = next_step(step, [Outcome(action, _answer(action)) for action in step.actions])
        actions += step.actions if step is not None else ()
    return actions


def _answer(action: Action) -> Obj | None:
    if not isinstance(action, Create):
        return None
    meta = action.obj["metadata"]
    name = meta.get("name") or f"{meta.get('generateName', '')}new"
    return {**action.obj, "metadata": {**meta, "name": name, "uid": f"uid of {name}"}}


def status_in(actions: Sequence[Action]) -> Obj:
    """The changes to the status among the actions, the last of each field."""
    status: Obj = {}
    for action in actions:
        if isinstance(action, Patch) and action.subresource == "status":
            assert isinstance(action.patch, dict)
            status |= action.patch.get("status") or {}
    return status


def made_objects(plan: Plan) -> list[Obj]:
    """In all of its steps."""
    actions = [*plan.actions, *without_trouble(plan)]
    return [action.obj for action in actions if isinstance(action, Create)]


def removed_names(plan: Plan) -> list[str]:
    actions = [*plan.actions, *without_trouble(plan)]
    return [action.name for action in actions if isinstance(action, Delete)]


def reasons(actions: Sequence[Action]) -> list[str]:
    return [action.reason for action in actions if isinstance(action, Record)]


def names(objects: Sequence[Obj]) -> list[str]:
    return [name_of(item) for item in objects]
