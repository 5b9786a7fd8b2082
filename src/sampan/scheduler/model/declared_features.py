"""What a pod needs of the node agent that not every agent can do yet. Pure.

Job: a pod's spec → the names of features that its node must declare in status.declaredFeatures.
"""

from sampan.api.objects import Obj

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_IN_USER_NAMESPACE = "UserNamespacesHostNetworkSupport"


def features_of(spec: Obj) -> tuple[str, ...]:
    found = []
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    if any(
        rule.get("action") == "RestartAllContainers"
        for container in containers
        for rule in container.get("restartPolicyRules") or ()
    ):
        found.append(RESTART_ALL)
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        found.append(HOST_NETWORK_IN_USER_NAMESPACE)
    return tuple(found)
