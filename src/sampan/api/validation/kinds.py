"""The table of validation by kind.

Job: from a group and kind to its rules, whose file is imported when the first object of it comes.
Invariant: the versions of a kind share their rules; a kind without a row has none beyond metadata.
To add a kind: a file beside this one with a `RULES`, and a line here.
"""

import functools
from importlib import import_module

from sampan.api.validation.rules import Rules

_APPS, _BATCH, _STORAGE = "apps", "batch", "storage.k8s.io"
_NETWORK, _RBAC = "networking.k8s.io", "rbac.authorization.k8s.io"
_FLOW, _DEVICES = "flowcontrol.apiserver.k8s.io", "resource.k8s.io"
_AUTHN, _AUTHZ = "authentication.k8s.io", "authorization.k8s.io"
_HOOKS = "admissionregistration.k8s.io"

ROWS: dict[tuple[str, str], str] = {
    ("", "Binding"): "access.reviews.BINDING",
    ("", "ConfigMap"): "access.config_map.RULES",
    ("", "Endpoints"): "network.endpoints.RULES",
    ("", "Event"): "cluster.event.CORE",
    ("", "LimitRange"): "cluster.limit_range.RULES",
    ("", "Namespace"): "cluster.namespace.RULES",
    ("", "Node"): "cluster.node.RULES",
    ("", "PersistentVolume"): "storage.persistent_volume.RULES",
    ("", "PersistentVolumeClaim"): "storage.persistent_volume_claim.RULES",
    ("", "Pod"): "pod.RULES",
    ("", "PodTemplate"): "miscellany.POD_TEMPLATE",
    ("", "ReplicationController"): "workloads.replication_controller.RULES",
    ("", "ResourceQuota"): "cluster.resource_quota.RULES",
    ("", "Secret"): "access.secret.RULES",
    ("", "Service"): "network.service.RULES",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "custom_resources.definition.RULES",
    ("apiregistration.k8s.io", "APIService"): "cluster.api_service.RULES",
    (_APPS, "ControllerRevision"): "miscellany.CONTROLLER_REVISION",
    (_APPS, "DaemonSet"): "workloads.daemon_set.RULES",
    (_APPS, "Deployment"): "workloads.deployment.RULES",
    (_APPS, "ReplicaSet"): "workloads.replica_set.RULES",
    (_APPS, "StatefulSet"): "workloads.stateful_set.RULES",
    ("autoscaling", "HorizontalPodAutoscaler"): "workloads.horizontal_pod_autoscaler.RULES",
    (_BATCH, "CronJob"): "workloads.cron_job.RULES",
    (_BATCH, "Job"): "workloads.job.RULES",
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
    ): "access.certificate_signing_request.RULES",
    ("certificates.k8s.io", "ClusterTrustBundle"): "access.cluster_trust_bundle.RULES",
    ("certificates.k8s.io", "PodCertificateRequest"): "access.pod_certificate_request.RULES",
    ("coordination.k8s.io", "Lease"): "cluster.lease.RULES",
    ("discovery.k8s.io", "EndpointSlice"): "network.endpoint_slice.RULES",
    ("events.k8s.io", "Event"): "cluster.event.NEW",
    ("node.k8s.io", "RuntimeClass"): "cluster.runtime_class.RULES",
    ("policy", "PodDisruptionBudget"): "workloads.pod_disruption_budget.RULES",
    ("scheduling.k8s.io", "PriorityClass"): "cluster.priority_class.RULES",
    (_AUTHN, "SelfSubjectReview"): "access.reviews.QUESTION",
    (_AUTHN, "TokenReview"): "access.reviews.TOKEN_REVIEW",
    (_AUTHZ, "LocalSubjectAccessReview"): "access.reviews.LOCAL_ACCESS",
    (_AUTHZ, "SelfSubjectAccessReview"): "access.reviews.SELF_ACCESS",
    (_AUTHZ, "SelfSubjectRulesReview"): "access.reviews.QUESTION",
    (_AUTHZ, "SubjectAccessReview"): "access.reviews.ACCESS",
    (_DEVICES, "DeviceClass"): "storage.dynamic_resources.DEVICE_CLASS",
    (_DEVICES, "DeviceTaintRule"): "storage.device_taints.RULES",
    (_DEVICES, "ResourceClaim"): "storage.dynamic_resources.CLAIM",
    (_DEVICES, "ResourceClaimTemplate"): "storage.dynamic_resources.CLAIM_TEMPLATE",
    (_DEVICES, "ResourceSlice"): "storage.resource_slice.RULES",
    (_FLOW, "FlowSchema"): "cluster.flow_control.FLOW_SCHEMA",
    (_FLOW, "PriorityLevelConfiguration"): "cluster.flow_control.PRIORITY_LEVEL",
    (_HOOKS, "MutatingAdmissionPolicy"): "cluster.policies.MUTATING_POLICY",
    (_HOOKS, "MutatingAdmissionPolicyBinding"): "cluster.policies.MUTATING_BINDING",
    (_HOOKS, "MutatingWebhookConfiguration"): "cluster.webhooks.RULES",
    (_HOOKS, "ValidatingAdmissionPolicy"): "cluster.policies.POLICY",
    (_HOOKS, "ValidatingAdmissionPolicyBinding"): "cluster.policies.POLICY_BINDING",
    (_HOOKS, "ValidatingWebhookConfiguration"): "cluster.webhooks.RULES",
    (_NETWORK, "IPAddress"): "miscellany.IP_ADDRESS",
    (_NETWORK, "Ingress"): "network.ingress.INGRESS",
    (_NETWORK, "IngressClass"): "network.ingress.INGRESS_CLASS",
    (_NETWORK, "NetworkPolicy"): "network.network_policy.RULES",
    (_NETWORK, "ServiceCIDR"): "miscellany.SERVICE_CIDR",
    (_RBAC, "ClusterRole"): "access.rbac.CLUSTER_ROLE",
    (_RBAC, "ClusterRoleBinding"): "access.rbac.CLUSTER_ROLE_BINDING",
    (_RBAC, "Role"): "access.rbac.ROLE",
    (_RBAC, "RoleBinding"): "access.rbac.ROLE_BINDING",
    (_STORAGE, "CSIDriver"): "storage.storage.CSI_DRIVER",
    (_STORAGE, "CSINode"): "storage.storage.CSI_NODE",
    (_STORAGE, "CSIStorageCapacity"): "storage.storage.CAPACITY",
    (_STORAGE, "StorageClass"): "storage.storage.STORAGE_CLASS",
    (_STORAGE, "VolumeAttachment"): "storage.storage.VOLUME_ATTACHMENT",
    (_STORAGE, "VolumeAttributesClass"): "storage.storage.ATTRIBUTES_CLASS",
    (
        "storagemigration.k8s.io",
        "StorageVersionMigration",
    ): "cluster.storage_version_migration.RULES",
}

# Their rules load the cryptography library, 15 MiB: with the first object.
_OF_CERTIFICATES = {
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("certificates.k8s.io", "PodCertificateRequest"),
}


@functools.cache
def rules_of_kind(group: str, kind: str) -> Rules | None:
    row = ROWS.get((group, kind))
    if row is None:
        return None
    module, _, name = row.rpartition(".")
    found: Rules = getattr(import_module(f"sampan.api.validation.{module}"), name)
    return found


def load_all() -> None:
    """So that no kind's first object waits for its rules, but those that need cryptography."""
    for row in ROWS.keys() - _OF_CERTIFICATES:
        rules_of_kind(*row)
