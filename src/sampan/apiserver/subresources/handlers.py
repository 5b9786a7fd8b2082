"""Handlers of calls that are not generic.

Job: the table from (resource, subresource, verb) to a handler.
"""

from collections.abc import Callable
from functools import partial

from sampan.api.objects import Obj
from sampan.apiserver.authn.tokens import Signer
from sampan.apiserver.subresources import (
    approval,
    binding,
    component_statuses,
    eviction,
    finalize,
    issuance,
    pod_changes,
    reviews,
    scale,
    token,
)
from sampan.apiserver.write.posted import AnswerPosted, posting
from sampan.apiserver.write.request_scope import CUSTOM, Handler

_SCALED = ("deployments.apps", "replicasets.apps", "replicationcontrollers", "statefulsets.apps")


def handlers(signer: Signer | None) -> dict[tuple[str, str, str], Handler]:
    table: dict[tuple[str, str, str], Handler] = {
        ("componentstatuses", "", "get"): component_statuses.get_status,
        ("componentstatuses", "", "list"): component_statuses.list_statuses,
        ("namespaces", "finalize", "update"): finalize.finalize_namespace,
    }
    for (resource, subresource), posted in _posted(signer).items():
        table[resource, subresource, "create"] = posting(*posted)
    for verb in ("update", "patch"):
        table["certificatesigningrequests.certificates.k8s.io", "approval", verb] = approval.approve
        table["podcertificaterequests.certificates.k8s.io", "status", verb] = issuance.issue
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


def _posted(
    signer: Signer | None,
) -> dict[tuple[str, str], tuple[AnswerPosted, Callable[[Obj], None] | None]]:
    authorization, authentication = "authorization.k8s.io", "authentication.k8s.io"
    of_tokens = (partial(token.create, signer), token.set_defaults)
    return {
        ("pods", "binding"): (binding.bind, None),
        ("bindings", ""): (binding.bind, None),
        ("pods", "eviction"): (eviction.evict, None),
        ("serviceaccounts", "token"): of_tokens,
        (f"selfsubjectreviews.{authentication}", ""): (reviews.self_subject_review, _as_it_is),
        (f"tokenreviews.{authentication}", ""): (reviews.token_review, _as_it_is),
        (f"selfsubjectaccessreviews.{authorization}", ""): (reviews.self_access_review, _as_it_is),
        (f"subjectaccessreviews.{authorization}", ""): (reviews.access_review, _as_it_is),
        (f"localsubjectaccessreviews.{authorization}", ""): (reviews.access_review, _as_it_is),
        (f"selfsubjectrulesreviews.{authorization}", ""): (reviews.self_rules_review, _as_it_is),
    }


def _as_it_is(_obj: Obj) -> None:
    """Nothing has a default."""
