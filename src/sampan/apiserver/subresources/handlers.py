"""Handlers of calls that are not generic.

Job: the table from (resource, subresource, verb) to a handler.
"""

from sampan.apiserver.authn.tokens import TokenSigner
from sampan.apiserver.subresources import (
    approval,
    binding,
    component_statuses,
    eviction,
    finalize,
    pod_changes,
    reviews,
    scale,
    token,
)
from sampan.apiserver.write.request_scope import CUSTOM, Handler

_SCALED = ("deployments.apps", "replicasets.apps", "replicationcontrollers", "statefulsets.apps")


def handlers(signer: TokenSigner | None) -> dict[tuple[str, str, str], Handler]:
    authorization, authentication = "authorization.k8s.io", "authentication.k8s.io"
    table: dict[tuple[str, str, str], Handler] = {
        ("componentstatuses", "", "get"): component_statuses.get_status,
        ("componentstatuses", "", "list"): component_statuses.list_statuses,
        ("pods", "binding", "create"): binding.bind,
        ("bindings", "", "create"): binding.bind,
        ("pods", "eviction", "create"): eviction.evict,
        ("namespaces", "finalize", "update"): finalize.finalize_namespace,
        ("serviceaccounts", "token", "create"): token.TokenRequests(signer).create,
        (f"selfsubjectreviews.{authentication}", "", "create"): reviews.self_subject_review,
        (f"tokenreviews.{authentication}", "", "create"): reviews.token_review,
        (f"selfsubjectaccessreviews.{authorization}", "", "create"): reviews.self_access_review,
        (f"subjectaccessreviews.{authorization}", "", "create"): reviews.access_review,
        (f"localsubjectaccessreviews.{authorization}", "", "create"): reviews.local_access_review,
        (f"selfsubjectrulesreviews.{authorization}", "", "create"): reviews.self_rules_review,
    }
    for verb in ("update", "patch"):
        table["certificatesigningrequests.certificates.k8s.io", "approval", verb] = approval.approve
        table["pods", "ephemeralcontainers", verb] = pod_changes.set_ephemeral_containers
        table["pods", "resize", verb] = pod_changes.resize
    for scaled in _SCALED:
        table[scaled, "scale", "get"] = scale.get_scale
        table[scaled, "scale", "update"] = scale.set_scale
        table[scaled, "scale", "patch"] = scale.set_scale
    table[CUSTOM, "scale", "get"] = scale.get_custom_scale
    table[CUSTOM, "scale", "update"] = scale.set_custom_scale
    table[CUSTOM, "scale", "patch"] = scale.set_custom_scale
    return table
