"""Fill in what the caller left out. The entry point, and the table of the kinds' own defaults.

Job: look up the kind's defaults and apply them, in place: the object is the caller's own copy.
Invariant: idempotent, and never raises: what has the wrong shape is left for validation to refuse.
To add a kind: a file beside this one, and a line in the table.
"""

from collections.abc import Callable
from contextlib import suppress

from sampan.api.defaults import (
    autoscaling,
    core,
    extension,
    jobs,
    persistent_volumes,
    pod,
    policy,
    rbac,
    services,
    workloads,
)
from sampan.api.objects import Obj
from sampan.api.resources import Resource

_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)

_RBAC, _HOOKS = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_DEVICES = "resource.k8s.io"

_TABLE: dict[tuple[str, str, str], Callable[[Obj], None]] = {
    ("", "v1", "Endpoints"): services.default_endpoints,
    ("", "v1", "Event"): core.default_event,
    ("", "v1", "LimitRange"): core.default_limit_range,
    ("", "v1", "Namespace"): core.default_namespace,
    ("", "v1", "Node"): core.default_node,
    ("", "v1", "PersistentVolume"): persistent_volumes.default_persistent_volume,
    ("", "v1", "PersistentVolumeClaim"): persistent_volumes.default_claim,
    ("", "v1", "Pod"): pod.default_pod,
    ("", "v1", "PodTemplate"): workloads.default_template_object,
    ("", "v1", "ReplicationController"): workloads.default_replication_controller,
    ("", "v1", "ResourceQuota"): core.default_resource_quota,
    ("", "v1", "Secret"): core.default_secret,
    ("", "v1", "Service"): services.default_service,
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): extension.default_definition,
    ("apiregistration.k8s.io", "v1", "APIService"): extension.default_api_service,
    ("apps", "v1", "DaemonSet"): workloads.default_daemon_set,
    ("apps", "v1", "Deployment"): workloads.default_deployment,
    ("apps", "v1", "ReplicaSet"): workloads.default_replica_set,
    ("apps", "v1", "StatefulSet"): workloads.default_stateful_set,
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): autoscaling.default_autoscaler_v1,
    ("autoscaling", "v2", "HorizontalPodAutoscaler"): autoscaling.default_autoscaler,
    ("batch", "v1", "CronJob"): jobs.default_cron_job,
    ("batch", "v1", "Job"): jobs.default_job,
    **{
        ("certificates.k8s.io", version, "PodCertificateRequest"): policy.default_pod_certificate
        for version in ("v1", "v1beta1", "v1alpha1")
    },
    ("discovery.k8s.io", "v1", "EndpointSlice"): services.default_endpoint_slice,
    ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"): policy.default_flow_schema,
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
    ): policy.default_priority_level,
    ("networking.k8s.io", "v1", "IngressClass"): services.default_ingress_class,
    ("networking.k8s.io", "v1", "NetworkPolicy"): services.default_network_policy,
    (_DEVICES, "v1", "ResourceClaim"): policy.default_resource_claim,
    (_DEVICES, "v1", "ResourceClaimTemplate"): policy.default_resource_claim_template,
    (_DEVICES, "v1beta2", "ResourceClaim"): policy.default_resource_claim,
    (_DEVICES, "v1beta2", "ResourceClaimTemplate"): policy.default_resource_claim_template,
    (_DEVICES, "v1beta1", "ResourceClaim"): policy.default_flat_claim,
    (_DEVICES, "v1beta1", "ResourceClaimTemplate"): policy.default_flat_claim_template,
    ("scheduling.k8s.io", "v1", "PriorityClass"): policy.default_priority_class,
    ("storage.k8s.io", "v1", "CSIDriver"): persistent_volumes.default_csi_driver,
    ("storage.k8s.io", "v1", "StorageClass"): persistent_volumes.default_storage_class,
    **{
        (_HOOKS, version, kind): default
        for version in ("v1", "v1beta1", "v1alpha1")
        for kind, default in (
            ("MutatingAdmissionPolicy", extension.default_policy),
            ("MutatingAdmissionPolicyBinding", extension.default_policy_binding),
        )
    },
    (_HOOKS, "v1", "MutatingWebhookConfiguration"): extension.default_mutating_webhooks,
    (_HOOKS, "v1", "ValidatingAdmissionPolicy"): extension.default_policy,
    (_HOOKS, "v1", "ValidatingAdmissionPolicyBinding"): extension.default_policy_binding,
    (_HOOKS, "v1", "ValidatingWebhookConfiguration"): extension.default_validating_webhooks,
    (_RBAC, "v1", "ClusterRoleBinding"): rbac.default_binding,
    (_RBAC, "v1", "RoleBinding"): rbac.default_binding,
}


# Kinds of which something in the status has a default.
_STATUS_HAS_DEFAULTS = frozenset({
    ("", "Namespace"), ("", "Node"), ("", "PersistentVolume"), ("", "PersistentVolumeClaim"),
    ("", "Service"),
})  # fmt: skip


def changes_status_alone(resource: Resource, subresource: str) -> bool:
    """Whether a write through this door leaves all but the status as it is stored, with nothing to
    fill in: what is stored has its defaults."""
    if subresource != "status" or resource.custom is not None:
        return False
    return (resource.group, resource.kind) not in _STATUS_HAS_DEFAULTS


def defaults_of(resource: Resource) -> Callable[[Obj], None]:
    return _TABLE.get((resource.group, resource.version, resource.kind), _nothing)


def apply_defaults(resource: Resource, obj: Obj) -> None:
    with suppress(*_MALFORMED):
        defaults_of(resource)(obj)


def _nothing(obj: Obj) -> None:
    """A kind without defaults."""
