"""The parts of a cluster as processes: their names, and as whom each may ask the API. Pure.

Job: part and user name → whether the API server takes the part's word for it.
Invariant: no part may be an administrator, nor what only another part is.
"""

import hmac
import secrets
from collections.abc import Mapping

from sampan.apiserver.authn.user import NODE_PREFIX
from sampan.cmd.cluster.control_plane.control_loops import CONTROLLERS_USER, SCHEDULER_USER
from sampan.cmd.cluster.node_accounts import INGRESS_USER, NETWORK_USER
from sampan.cmd.cluster.nodes import DNS_USER, LOCAL_PROVISIONER_USER
from sampan.controllers.identities import STAGES_USER

API_SERVER, SCHEDULER, CONTROLLERS, NODES = "apiserver", "scheduler", "controllers", "nodes"
AGENTS = {
    SCHEDULER: "sampan-kube-scheduler",
    CONTROLLERS: "sampan-kube-controller-manager",
    NODES: "sampan-kubelet",
}
_CONTROLLER_ACCOUNTS = "system:serviceaccount:kube-system:"
# What simulated nodes share they read as the controllers do: a node may not read all of it.
_OF_NODES = frozenset({LOCAL_PROVISIONER_USER, NETWORK_USER, DNS_USER, CONTROLLERS_USER})


def may_be(part: str, user: str) -> bool:
    match part:
        case "scheduler":
            return user == SCHEDULER_USER
        case "controllers":
            own = user in (CONTROLLERS_USER, INGRESS_USER, STAGES_USER)
            return own or user.startswith(_CONTROLLER_ACCOUNTS)
        case "nodes":
            return user in _OF_NODES or (
                user.startswith(NODE_PREFIX) and len(user) > len(NODE_PREFIX)
            )
    return False


def new_secrets() -> dict[str, str]:
    """By part: what it shows at the API server's socket, for as long as the cluster runs."""
    return {part: secrets.token_urlsafe(32) for part in AGENTS}


def part_of(authorization: str, known: Mapping[str, str]) -> str | None:
    """Whose secret an Authorization header shows."""
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer":
        return None
    shown = secret.encode()
    for part, expected in known.items():
        if hmac.compare_digest(shown, expected.encode()):
            return part
    return None
