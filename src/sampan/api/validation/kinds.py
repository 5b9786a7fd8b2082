"""The table of the kinds' own rules.

Job: from a group and kind to its rules.
Invariant: the versions of a kind share their rules; a kind without a row has none beyond metadata.
To add a kind: a file beside this one with a `RULES`, and a line here.
"""

from sampan.api.validation import miscellany, pod
from sampan.api.validation.access import (
    certificate_signing_request,
    config_map,
    rbac,
    reviews,
    secret,
)
from sampan.api.validation.cluster import (
    api_service,
    event,
    flow_control,
    lease,
    limit_range,
    namespace,
    node,
    policies,
    priority_class,
    resource_quota,
    runtime_class,
    webhooks,
)
from sampan.api.validation.custom_resources import definition
from sampan.api.validation.network import (
    endpoint_slice,
    endpoints,
    ingress,
    network_policy,
    service,
)
from sampan.api.validation.rules import Rules
from sampan.api.validation.storage import (
    dynamic_resources,
    persistent_volume,
    persistent_volume_claim,
    storage,
)
from sampan.api.validation.workloads import (
    cron_job,
    daemon_set,
    deployment,
    horizontal_pod_autoscaler,
    job,
    pod_disruption_budget,
    replica_set,
    replication_controller,
    stateful_set,
)

_APPS, _BATCH, _STORAGE = "apps", "batch", "storage.k8s.io"
_NETWORK, _RBAC = "networking.k8s.io", "rbac.authorization.k8s.io"
_FLOW, _DEVICES = "flowcontrol.apiserver.k8s.io", "resource.k8s.io"
_AUTHN, _AUTHZ = "authentication.k8s.io", "authorization.k8s.io"
_HOOKS = "admissionregistration.k8s.io"

TABLE: dict[tuple[str, str], Rules] = {
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
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition.RULES,
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
    (_HOOKS, "MutatingAdmissionPolicy"): policies.MUTATING_POLICY,
    (_HOOKS, "MutatingAdmissionPolicyBinding"): policies.MUTATING_BINDING,
    (_HOOKS, "MutatingWebhookConfiguration"): webhooks.RULES,
    (_HOOKS, "ValidatingAdmissionPolicy"): policies.POLICY,
    (_HOOKS, "ValidatingAdmissionPolicyBinding"): policies.POLICY_BINDING,
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
