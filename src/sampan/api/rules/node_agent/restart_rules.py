"""Restart rules of containers: what is done at which exit code. Pure.

Job: a container, its exit code → the action of the first rule that fits; whether a pod may have all
    of its containers restarted at once (RestartAllContainersOnContainerExits).
"""

from collections.abc import Iterator

from sampan.api import features
from sampan.api.objects import Obj

RESTART, RESTART_ALL = "Restart", "RestartAllContainers"


def is_on() -> bool:
    return features.enabled("RestartAllContainersOnContainerExits")


def action_at(container: Obj, exit_code: int) -> str:
    """Empty: no rule fits, and the container's policy says what is done."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed == (codes.get("operator") == "In"):
            return str(rule.get("action") or "")
    return ""


def restarts_all_at(container: Obj, exit_code: int) -> bool:
    return action_at(container, exit_code) == RESTART_ALL and is_on()


def has_restart_all(spec: Obj) -> bool:
    """Of a pod's spec: a rule of a container names all of them, whatever the gate."""
    return any(
        rule.get("action") == RESTART_ALL
        for container in _ruled(spec)
        for rule in container.get("restartPolicyRules") or ()
    )


def may_restart_all(spec: Obj) -> bool:
    return has_restart_all(spec) and is_on()


def _ruled(spec: Obj) -> Iterator[Obj]:
    for name in ("containers", "initContainers"):
        yield from spec.get(name) or ()
