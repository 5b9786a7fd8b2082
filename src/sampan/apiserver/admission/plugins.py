"""Admission plugins: which are enabled, in upstream's recommended order.

Job: one row per plugin: what it is about, and who loads it (loaders.py); choose by name what runs.
    A module's `plugin(parts)` gives the steps.
Invariant: what is not to be switched off (OWN) is not in the list of names.
"""

from collections.abc import Callable

from sampan.api.resources import (
    BINDINGS,
    CLUSTER_TRUST_BUNDLES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_CERTIFICATE_REQUESTS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SERVICES,
    VOLUME_ATTRIBUTES_CLASSES,
)
from sampan.apiserver.admission import loaders
from sampan.apiserver.admission.chain import (
    CONNECT,
    CREATE,
    DELETE,
    UPDATE,
    Plugin,
    Steps,
    kinds_of,
)
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.core.fast_dataclass import dataclass

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
    load: Callable[[PluginInitializer], Steps]
    operations: frozenset[str]
    kinds: frozenset[tuple[str, str]] | None = None  # None: every kind
    main_only: bool = False
    is_on: bool = True


# Part of the kinds themselves.
OWN = (
    Row("CertificateRequester", loaders.certificate_request, _NEW, _REQUEST, main_only=True),
    Row("RoleEscalation", loaders.role_escalation, _WRITES, _ROLES),
    Row("PodCertificateSigning", loaders.pod_certificate_signing, frozenset({UPDATE}),
        kinds_of(POD_CERTIFICATE_REQUESTS)),
    Row("DeviceAdminAccess", loaders.device_admin_access, _NEW, _DEVICE_CLAIMS, main_only=True),
    Row("ClaimStatusRights", loaders.claim_status_rights, frozenset({UPDATE}),
        kinds_of(RESOURCE_CLAIMS)),
)  # fmt: skip
ROWS = (
    Row("AlwaysAdmit", loaders.always_admit, _EVERY, is_on=False),
    Row("NamespaceAutoProvision", loaders.namespace_auto_provision, _NEW, is_on=False),
    Row("NamespaceLifecycle", loaders.namespace_lifecycle, _CHANGES),
    Row("NamespaceExists", loaders.namespace_exists, _CHANGES, is_on=False),
    Row("LimitPodHardAntiAffinityTopology", loaders.limit_hard_anti_affinity, _WRITES, _POD,
        main_only=True, is_on=False),
    Row("LimitRanger", loaders.limit_ranger, _WRITES, _POD | _CLAIM),
    Row("ServiceAccount", loaders.service_account, _NEW, _POD, main_only=True),
    Row("NodeRestriction", loaders.node_restriction, _CHANGES),
    Row("TaintNodesByCondition", loaders.taint_nodes_by_condition, _NEW, kinds_of(NODES),
        main_only=True),
    Row("AlwaysPullImages", loaders.always_pull_images, _WRITES, _POD, is_on=False),
    Row("ImagePolicyWebhook", loaders.image_policy_webhook, _WRITES, _POD, is_on=False),
    Row("PodSecurity", loaders.pod_security, _WRITES, _POD | kinds_of(NAMESPACES) | _TEMPLATES),
    Row("PodNodeSelector", loaders.pod_node_selector, _NEW, _POD, main_only=True, is_on=False),
    Row("Priority", loaders.priority, _WRITES, _POD | kinds_of(PRIORITY_CLASSES), main_only=True),
    Row("DefaultTolerationSeconds", loaders.default_toleration_seconds, _WRITES, _POD,
        main_only=True),
    Row("PodTolerationRestriction", loaders.pod_toleration_restriction, _WRITES, _POD,
        main_only=True, is_on=False),
    Row("EventRateLimit", loaders.event_rate_limit, _WRITES,
        frozenset({("", "Event"), ("events.k8s.io", "Event")}), is_on=False),
    Row("ExtendedResourceToleration", loaders.extended_resource_toleration, _WRITES, _POD,
        main_only=True, is_on=False),
    Row("DefaultStorageClass", loaders.default_storage_class, _NEW, _CLAIM, main_only=True),
    Row("StorageObjectInUseProtection", loaders.storage_in_use_protection, _NEW,
        _CLAIM | kinds_of(PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES), main_only=True),
    Row("OwnerReferencesPermissionEnforcement", loaders.owner_references, _WRITES, is_on=False),
    Row("PersistentVolumeClaimResize", loaders.claim_resize, frozenset({UPDATE}), _CLAIM,
        main_only=True),
    Row("RuntimeClass", loaders.runtime_class, _NEW, _POD, main_only=True),
    Row("CertificateApproval", loaders.certificate_approval, frozenset({UPDATE}), _REQUEST),
    Row("CertificateSigning", loaders.certificate_signing, frozenset({UPDATE}), _REQUEST),
    Row("ClusterTrustBundleAttest", loaders.cluster_trust_bundle_attest, _WRITES,
        kinds_of(CLUSTER_TRUST_BUNDLES), main_only=True),
    Row("CertificateSubjectRestriction", loaders.certificate_subject_restriction, _NEW, _REQUEST,
        main_only=True),
    Row("DefaultIngressClass", loaders.default_ingress_class, _NEW,
        frozenset({("networking.k8s.io", "Ingress")}), main_only=True),
    Row("DenyServiceExternalIPs", loaders.deny_external_ips, _WRITES, kinds_of(SERVICES),
        main_only=True, is_on=False),
    Row("PodTopologyLabels", loaders.pod_topology_labels, _NEW, _POD | kinds_of(BINDINGS)),
    Row("NodeDeclaredFeatureValidator", loaders.node_declared_feature_validator,
        frozenset({UPDATE}), _POD),
    Row("MutatingAdmissionPolicy", loaders.mutating_policies, _EVERY),
    Row("MutatingAdmissionWebhook", loaders.mutating_webhooks, _EVERY),
    Row("ValidatingAdmissionPolicy", loaders.validating_policies, _EVERY),
    Row("ValidatingAdmissionWebhook", loaders.validating_webhooks, _EVERY),
    Row("ResourceQuota", loaders.resource_quota, _WRITES),
    Row("AlwaysDeny", loaders.always_deny, _EVERY, is_on=False),
)  # fmt: skip


def chosen_plugins(initializer: PluginInitializer) -> list[Plugin]:
    """Raises UnknownPlugin."""
    settings, names = initializer.settings, {row.name for row in ROWS}
    for name in (*settings.enabled, *settings.disabled):
        if name not in names:
            raise UnknownPlugin(f'admission plugin "{name}" is unknown')
    on = [
        row
        for row in ROWS
        if row.name in settings.enabled or (row.is_on and row.name not in settings.disabled)
    ]
    return [_plugin(row, initializer) for row in (*OWN, *on)]


def _plugin(row: Row, initializer: PluginInitializer) -> Plugin:
    return Plugin(
        row.name, row.operations, lambda: row.load(initializer), row.kinds, row.main_only
    )  # fmt: skip
