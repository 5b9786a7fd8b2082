"""Is this object good? The entry points, and the table of the kinds' own rules.

Job: look up the kind's rules, run them after the rules for metadata, gather every cause.
Invariant: pure, and never raises: an object whose shape the schema should have refused is answered
    with a cause like any other.
To add a kind: a file beside this one with a `RULES`, and a line in the table.
"""

from collections.abc import Callable

from sampan.api.errors import FieldError, type_invalid
from sampan.api.objects import Obj, meta_of
from sampan.api.resources import Resource
from sampan.api.validation import (
    api_service,
    certificate_signing_request,
    config_map,
    cron_job,
    custom_resource_definition,
    daemon_set,
    deployment,
    dynamic_resources,
    endpoint_slice,
    endpoints,
    event,
    flow_control,
    horizontal_pod_autoscaler,
    ingress,
    job,
    lease,
    limit_range,
    miscellany,
    namespace,
    network_policy,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_disruption_budget,
    priority_class,
    rbac,
    replica_set,
    replication_controller,
    resource_quota,
    reviews,
    runtime_class,
    secret,
    service,
    stateful_set,
    storage,
    webhooks,
)
from sampan.api.validation.metadata import validate_metadata, validate_metadata_update
from sampan.api.validation.rules import Rules

_DEFAULT = Rules()
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)

_APPS, _BATCH, _STORAGE = "apps", "batch", "storage.k8s.io"
_NETWORK, _RBAC = "networking.k8s.io", "rbac.authorization.k8s.io"
_FLOW, _DEVICES = "flowcontrol.apiserver.k8s.io", "resource.k8s.io"
_AUTHN, _AUTHZ = "authentication.k8s.io", "authorization.k8s.io"
_HOOKS = "admissionregistration.k8s.io"

# By group and kind: the versions of a kind share their rules.
_TABLE: dict[tuple[str, str], Rules] = {
    ("", "Binding"): reviews.BINDING,
    ("", "ConfigMap"): config_map.RULES,
    ("", "Endpoints"): endpoints.RULES,
    ("", "Event"): event.CORE,
    ("", "LimitRange"): limit_range.RULES,
    ("", "Namespace"): namespace.RULES,
    ("", "Node"): node.RULES,
    ("", "PersistentVolume"): persistent_volume.RULES,
    ("", "PersistentVolumeClaim"): persistent_volume_claim.RULES,
    ("", "Pod"): pod.RULES,
    ("", "PodTemplate"): miscellany.POD_TEMPLATE,
    ("", "ReplicationController"): replication_controller.RULES,
    ("", "ResourceQuota"): resource_quota.RULES,
    ("", "Secret"): secret.RULES,
    ("", "Service"): service.RULES,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): custom_resource_definition.RULES,
    ("apiregistration.k8s.io", "APIService"): api_service.RULES,
    (_APPS, "ControllerRevision"): miscellany.CONTROLLER_REVISION,
    (_APPS, "DaemonSet"): daemon_set.RULES,
    (_APPS, "Deployment"): deployment.RULES,
    (_APPS, "ReplicaSet"): replica_set.RULES,
    (_APPS, "StatefulSet"): stateful_set.RULES,
    ("autoscaling", "HorizontalPodAutoscaler"): horizontal_pod_autoscaler.RULES,
    (_BATCH, "CronJob"): cron_job.RULES,
    (_BATCH, "Job"): job.RULES,
    ("certificates.k8s.io", "CertificateSigningRequest"): certificate_signing_request.RULES,
    ("coordination.k8s.io", "Lease"): lease.RULES,
    ("discovery.k8s.io", "EndpointSlice"): endpoint_slice.RULES,
    ("events.k8s.io", "Event"): event.NEW,
    ("node.k8s.io", "RuntimeClass"): runtime_class.RULES,
    ("policy", "PodDisruptionBudget"): pod_disruption_budget.RULES,
    ("scheduling.k8s.io", "PriorityClass"): priority_class.RULES,
    (_AUTHN, "SelfSubjectReview"): reviews.QUESTION,
    (_AUTHN, "TokenReview"): reviews.TOKEN_REVIEW,
    (_AUTHZ, "LocalSubjectAccessReview"): reviews.LOCAL_ACCESS,
    (_AUTHZ, "SelfSubjectAccessReview"): reviews.SELF_ACCESS,
    (_AUTHZ, "SelfSubjectRulesReview"): reviews.QUESTION,
    (_AUTHZ, "SubjectAccessReview"): reviews.ACCESS,
    (_DEVICES, "DeviceClass"): dynamic_resources.DEVICE_CLASS,
    (_DEVICES, "ResourceClaim"): dynamic_resources.CLAIM,
    (_DEVICES, "ResourceClaimTemplate"): dynamic_resources.CLAIM_TEMPLATE,
    (_DEVICES, "ResourceSlice"): dynamic_resources.SLICE,
    (_FLOW, "FlowSchema"): flow_control.FLOW_SCHEMA,
    (_FLOW, "PriorityLevelConfiguration"): flow_control.PRIORITY_LEVEL,
    (_HOOKS, "MutatingWebhookConfiguration"): webhooks.RULES,
    (_HOOKS, "ValidatingAdmissionPolicy"): webhooks.POLICY,
    (_HOOKS, "ValidatingAdmissionPolicyBinding"): webhooks.POLICY_BINDING,
    (_HOOKS, "ValidatingWebhookConfiguration"): webhooks.RULES,
    (_NETWORK, "IPAddress"): miscellany.IP_ADDRESS,
    (_NETWORK, "Ingress"): ingress.INGRESS,
    (_NETWORK, "IngressClass"): ingress.INGRESS_CLASS,
    (_NETWORK, "NetworkPolicy"): network_policy.RULES,
    (_NETWORK, "ServiceCIDR"): miscellany.SERVICE_CIDR,
    (_RBAC, "ClusterRole"): rbac.CLUSTER_ROLE,
    (_RBAC, "ClusterRoleBinding"): rbac.CLUSTER_ROLE_BINDING,
    (_RBAC, "Role"): rbac.ROLE,
    (_RBAC, "RoleBinding"): rbac.ROLE_BINDING,
    (_STORAGE, "CSIDriver"): storage.CSI_DRIVER,
    (_STORAGE, "CSINode"): storage.CSI_NODE,
    (_STORAGE, "CSIStorageCapacity"): storage.CAPACITY,
    (_STORAGE, "StorageClass"): storage.STORAGE_CLASS,
    (_STORAGE, "VolumeAttachment"): storage.VOLUME_ATTACHMENT,
    (_STORAGE, "VolumeAttributesClass"): storage.ATTRIBUTES_CLASS,
}


def rules_of(resource: Resource) -> Rules:
    return _TABLE.get((resource.group, resource.kind), _DEFAULT)


def validate_create(resource: Resource, obj: Obj) -> list[FieldError]:
    rules = rules_of(resource)

    def run(errors: list[FieldError]) -> None:
        if rules.has_identity:
            validate_metadata(meta_of(obj), resource.namespaced, rules.name, "metadata", errors)
        rules.create(obj, errors)

    return _gathered(run)


def validate_update(resource: Resource, new: Obj, old: Obj) -> list[FieldError]:
    """`new` must carry the resourceVersion that it is based on, also for an unconditional write."""
    rules = rules_of(resource)

    def run(errors: list[FieldError]) -> None:
        validate_metadata_update(meta_of(new), meta_of(old), "metadata", errors)
        rules.update(new, old, errors)

    return _gathered(run)


def validate_status_update(resource: Resource, new: Obj, old: Obj) -> list[FieldError]:
    rules = rules_of(resource)

    def run(errors: list[FieldError]) -> None:
        validate_metadata_update(meta_of(new), meta_of(old), "metadata", errors)
        rules.status(new, old, errors)

    return _gathered(run)


def _gathered(run: Callable[[list[FieldError]], None]) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        run(errors)
    except _MALFORMED as wrong:
        errors.append(type_invalid("", "", f"the object's shape is not that of its kind: {wrong}"))
    return errors
