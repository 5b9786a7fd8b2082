"""Declared features: what a node's agent can do that not every agent can yet. Pure.

Job: the features that a node declares in status.declaredFeatures; those that a pod needs to run,
    and those that a change of a pod that runs needs.
Invariant: in the order of their names, as upstream's registry has them.
"""

from collections.abc import Collection, Sequence

from sampan.api import features
from sampan.api.objects import Obj
from sampan.api.rules.node_agent.restart_rules import has_restart_all
from sampan.api.rules.pods import is_sidecar

HOST_NETWORK_IN_USER_NAMESPACE = "UserNamespacesHostNetworkSupport"
RESTART_ALL = "RestartAllContainersOnContainerExits"
POD_RESIZE = "InPlacePodLevelResourcesVerticalScaling"
INIT_RESIZE = "InPlacePodVerticalScalingInitContainers"
# Each is behind the gate of its name, and is declared where that is on.
_DECLARED = ("ExtendWebSocketsToKubelet", POD_RESIZE, INIT_RESIZE, RESTART_ALL)


def declared() -> tuple[str, ...]:
    """By this process's node agents."""
    on = features.all_enabled()
    return tuple(name for name in _DECLARED if name in on)


def missing_to_run(spec: Obj) -> str:
    """Of a pod that is to run here: what this node's agent cannot do; empty: nothing."""
    if not features.enabled("NodeDeclaredFeatures"):
        return ""
    return missing(needed_to_run(spec), declared())


def missing_to_change(old: Obj, new: Obj, there: Collection[str]) -> str:
    """Of the specs of a pod before and after; `there`: what its node declares."""
    if not features.enabled("NodeDeclaredFeatures"):
        return ""
    return missing(needed_to_change(old, new), there)


def needed_to_run(spec: Obj) -> tuple[str, ...]:
    found = []
    if has_restart_all(spec):
        found.append(RESTART_ALL)
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        found.append(HOST_NETWORK_IN_USER_NAMESPACE)
    return tuple(found)


def needed_to_change(old: Obj, new: Obj) -> tuple[str, ...]:
    """Of the specs of a pod before and after."""
    found = []
    if (old.get("resources") or None) != (new.get("resources") or None):
        found.append(POD_RESIZE)
    before, after = old.get("initContainers") or (), new.get("initContainers") or ()
    if any(
        not is_sidecar(was) and (was.get("resources") or {}) != (item.get("resources") or {})
        for was, item in zip(before, after, strict=False)
    ):
        found.append(INIT_RESIZE)
    return tuple(found)


def missing(needed: Sequence[str], there: Collection[str]) -> str:
    """Those that are not there, as they are told; empty: none is missing."""
    return ", ".join(name for name in needed if name not in there)
