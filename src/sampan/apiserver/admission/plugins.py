"""Which plugins run, in which order. As upstream's recommended order.

Job: one row per plugin: what it is about, and which module beside this one holds it; choose by name
    what runs. A module's `plugin(parts)` gives the steps.
Invariant: what is not to be switched off (OWN) is not in the list of names.
"""

from importlib import import_module

from sampan.api.resources import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SERVICES,
)
from sampan.apiserver.admission.chain import CONNECT, CREATE, DELETE, UPDATE, Plugin, kinds_of
from sampan.apiserver.admission.parts import PluginParts
from sampan.core.records import dataclass

_EVERY = frozenset({CREATE, UPDATE, DELETE, CONNECT})
_CHANGES = frozenset({CREATE, UPDATE, DELETE})
_WRITES = frozenset({CREATE, UPDATE})
_NEW = frozenset({CREATE})

_POD = kinds_of(PODS)
_CLAIM = kinds_of(PERSISTENT_VOLUME_CLAIMS)
_REQUEST = frozenset({("certificates.k8s.io", "CertificateSigningRequest")})
_DEVICE_CLAIMS = kinds_of(RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
_RBAC = "rbac.authorization.k8s.io"
# What has a pod template inside: PodSecurity tells about it.
_TEMPLATES = frozenset({
    ("", "PodTemplate"), ("", "ReplicationController"), ("apps", "ReplicaSet"),
    ("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job"),
    ("batch", "CronJob"),
})  # fmt: skip
_ROLES = frozenset(
    (_RBAC, f"{scope}Role{binding}") for scope in ("", "Cluster") for binding in ("", "Binding")
)


class UnknownPlugin(ValueError):
    """A flag names a plugin that does not exist."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    module: str
    operations: frozenset[str]
    kinds: frozenset[tuple[str, str]] | None = None  # None: every kind
    main_only: bool = False
    is_on: bool = True


# Part of the kinds themselves.
OWN = (
    Row("CertificateRequester", "certificate_request", _NEW, _REQUEST, main_only=True),
    Row("RoleEscalation", "role_escalation", _WRITES, _ROLES),
    Row("DeviceAdminAccess", "device_admin_access", _NEW, _DEVICE_CLAIMS, main_only=True),
)
ROWS = (
    Row("AlwaysAdmit", "always_admit", _EVERY, is_on=False),
    Row("NamespaceAutoProvision", "namespace_auto_provision", _NEW, is_on=False),
    Row("NamespaceLifecycle", "namespace_lifecycle", _CHANGES),
    Row("NamespaceExists", "namespace_exists", _CHANGES, is_on=False),
    Row("LimitPodHardAntiAffinityTopology", "limit_hard_anti_affinity", _WRITES, _POD,
        main_only=True, is_on=False),
    Row("LimitRanger", "limit_ranger", _WRITES, _POD | _CLAIM),
    Row("ServiceAccount", "service_account", _NEW, _POD, main_only=True),
    Row("NodeRestriction", "node_restriction", _CHANGES),
    Row("TaintNodesByCondition", "taint_nodes_by_condition", _NEW, kinds_of(NODES),
        main_only=True),
    Row("AlwaysPullImages", "always_pull_images", _WRITES, _POD, is_on=False),
    Row("ImagePolicyWebhook", "image_policy_webhook", _WRITES, _POD, is_on=False),
    Row("PodSecurity", "pod_security", _WRITES, _POD | kinds_of(NAMESPACES) | _TEMPLATES),
    Row("PodNodeSelector", "pod_node_selector", _NEW, _POD, main_only=True, is_on=False),
    Row("Priority", "priority", _WRITES, _POD | kinds_of(PRIORITY_CLASSES), main_only=True),
    Row("DefaultTolerationSeconds", "default_toleration_seconds", _WRITES, _POD, main_only=True),
    Row("PodTolerationRestriction", "pod_toleration_restriction", _WRITES, _POD, main_only=True,
        is_on=False),
    Row("EventRateLimit", "event_rate_limit", _WRITES,
        frozenset({("", "Event"), ("events.k8s.io", "Event")}), is_on=False),
    Row("ExtendedResourceToleration", "extended_resource_toleration", _WRITES, _POD,
        main_only=True, is_on=False),
    Row("DefaultStorageClass", "default_storage_class", _NEW, _CLAIM, main_only=True),
    Row("StorageObjectInUseProtection", "storage_in_use_protection", _NEW,
        _CLAIM | kinds_of(PERSISTENT_VOLUMES), main_only=True),
    Row("OwnerReferencesPermissionEnforcement", "owner_references", _WRITES, is_on=False),
    Row("PersistentVolumeClaimResize", "claim_resize", frozenset({UPDATE}), _CLAIM,
        main_only=True),
    Row("RuntimeClass", "runtime_class", _NEW, _POD, main_only=True),
    Row("CertificateApproval", "certificate_approval", frozenset({UPDATE}), _REQUEST),
    Row("CertificateSigning", "certificate_signing", frozenset({UPDATE}), _REQUEST),
    Row("ClusterTrustBundleAttest", "cluster_trust_bundle_attest", _WRITES,
        frozenset({("certificates.k8s.io", "ClusterTrustBundle")}), main_only=True),
    Row("CertificateSubjectRestriction", "certificate_subject_restriction", _NEW, _REQUEST,
        main_only=True),
    Row("DefaultIngressClass", "default_ingress_class", _NEW,
        frozenset({("networking.k8s.io", "Ingress")}), main_only=True),
    Row("DenyServiceExternalIPs", "deny_external_ips", _WRITES, kinds_of(SERVICES),
        main_only=True, is_on=False),
    Row("PodTopologyLabels", "pod_topology_labels", _WRITES, _POD),
    Row("MutatingAdmissionPolicy", "mutating_policies", _EVERY),
    Row("MutatingAdmissionWebhook", "mutating_webhooks", _EVERY),
    Row("ValidatingAdmissionPolicy", "validating_policies", _EVERY),
    Row("ValidatingAdmissionWebhook", "validating_webhooks", _EVERY),
    Row("ResourceQuota", "resource_quota", _WRITES),
    Row("AlwaysDeny", "always_deny", _EVERY, is_on=False),
)  # fmt: skip


def chosen(parts: PluginParts) -> list[Plugin]:
    """Raises UnknownPlugin."""
    settings, names = parts.settings, {row.name for row in ROWS}
    for name in (*settings.enabled, *settings.disabled):
        if name not in names:
            raise UnknownPlugin(f'admission plugin "{name}" is unknown')
    on = [
        row
        for row in ROWS
        if row.name in settings.enabled or (row.is_on and row.name not in settings.disabled)
    ]
    return [_plugin(row, parts) for row in (*OWN, *on)]


def _plugin(row: Row, parts: PluginParts) -> Plugin:
    where = f"{__package__}.{row.module}"
    return Plugin(
        row.name, row.operations, lambda: import_module(where).plugin(parts), row.kinds,
        row.main_only,
    )  # fmt: skip
