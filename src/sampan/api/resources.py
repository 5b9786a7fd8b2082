"""The table of kinds: routes, discovery, storage keys and the client's names all come from here.

Job: say which resources exist, with their names, scope, verbs and subresources.
Invariant: one row per group, version and plural; a kind that is served in two versions or groups
    has one storage key, and `stored_in` names the version that is stored.
To add a kind: add a row; where not every version of Kubernetes serves it, data/served.json says so.
"""

from dataclasses import field
from typing import Protocol

from sampan.api import features
from sampan.api.feature_gates import number_of
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.files.packaged_data import packaged_data

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE = ("create",)
READ_WRITE = ("get", "patch", "update")
CONNECT = ("create", "delete", "get", "patch", "update")  # proxy: any method passes


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    verbs: tuple[str, ...] = READ_WRITE
    # What the subresource takes and gives, where that is not the parent's own kind.
    kind: str = ""
    group: str = ""
    version: str = ""


class Defined(Protocol):
    """What a definition says of a kind; custom_of in api/custom/custom_version.py has the rest."""

    singular: str
    list_kind: str


@dataclass(frozen=True, slots=True)
class Resource:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[Subresource, ...] = ()
    stored_as: tuple[str, str] = ("", "")  # (group, version) where it differs
    has_versions: bool = False  # which of them is stored changes with the release
    # Of a kind that a CustomResourceDefinition defines.
    custom: Defined | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        """Of what tells kinds apart; a pod's way asks for it a hundred times."""
        return hash((self.plural, self.group, self.version))

    @property
    def stored_in(self) -> tuple[str, str]:
        """Group and version, where they are not its own."""
        if not self.has_versions:
            return self.stored_as
        version = features.of_release(storage_versions)[self.group_resource]
        return ("", "") if version == self.version else (self.group, version)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower() if self.custom is None else self.custom.singular

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List" if self.custom is None else self.custom.list_kind

    @property
    def group_resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_prefix(self) -> str:
        """`/registry/pods/`, `/registry/deployments.apps/`: with the slash, so that one plural is
        never the prefix of another."""
        if self.stored_as == ("", ""):
            return f"/registry/{self.group_resource}/"
        group = self.stored_as[0]
        return f"/registry/{self.plural}.{group}/" if group else f"/registry/{self.plural}/"

    @property
    def path(self) -> str:
        """`/api/v1`, `/apis/apps/v1`."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    def storage_key(self, namespace: str, name: str) -> str:
        inner = f"{namespace}/{name}" if self.namespaced else name
        return self.storage_prefix + inner

    def subresource(self, name: str) -> Subresource | None:
        return next((item for item in self.subresources if item.name == name), None)


def storage_versions(release: features.Release) -> dict[str, str]:
    """By group resource: that of the last entry that is not newer than the release."""
    shown = number_of(release.shown)
    return {
        name: [version for since, version in history.items() if number_of(since) <= shown][-1]
        for name, history in packaged_data("served")["storage"].items()
    }


STATUS = Subresource("status")
SCALE = Subresource("scale", kind="Scale", group="autoscaling", version="v1")


def _core(kind: str, plural: str, *subresources: Subresource, **rest: object) -> Resource:
    return Resource("", "v1", kind, plural, subresources=subresources, **rest)  # type: ignore[arg-type]  # the row's own keywords


def _row(
    group: str, version: str, kind: str, plural: str, *subresources: Subresource, **rest: object
) -> Resource:
    return Resource(group, version, kind, plural, subresources=subresources, **rest)  # type: ignore[arg-type]  # the row's own keywords


def _in(version: str, row: Resource) -> Resource:
    """The same kind in another version of its group."""
    return replace(row, version=version)


_CLUSTER = {"namespaced": False}
_VERSIONS = {"has_versions": True}
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_REVIEW = {"verbs": CREATE}


def _connect(name: str, kind: str, verbs: tuple[str, ...] = CONNECT) -> Subresource:
    return Subresource(name, verbs, kind=kind, version="v1")


PODS = _core(
    "Pod", "pods",
    _connect("attach", "PodAttachOptions", ("create", "get")),
    Subresource("binding", CREATE, kind="Binding", version="v1"),
    Subresource("ephemeralcontainers"),
    Subresource("eviction", CREATE, kind="Eviction", group="policy", version="v1"),
    _connect("exec", "PodExecOptions", ("create", "get")),
    Subresource("log", ("get",)),
    _connect("portforward", "PodPortForwardOptions", ("create", "get")),
    _connect("proxy", "PodProxyOptions"),
    Subresource("resize"),
    STATUS,
    short_names=("po",), categories=_ALL,
)  # fmt: skip
NODES = _core(
    "Node", "nodes", _connect("proxy", "NodeProxyOptions"), STATUS, short_names=("no",), **_CLUSTER
)
NAMESPACES = _core(
    "Namespace", "namespaces", Subresource("finalize", ("update",)), STATUS,
    short_names=("ns",), verbs=tuple(v for v in VERBS if v != "deletecollection"), **_CLUSTER,
)  # fmt: skip
SERVICES = _core(
    "Service", "services", _connect("proxy", "ServiceProxyOptions"), STATUS,
    short_names=("svc",), categories=_ALL,
)  # fmt: skip
SERVICE_ACCOUNTS = _core(
    "ServiceAccount", "serviceaccounts",
    Subresource("token", CREATE, kind="TokenRequest", group="authentication.k8s.io", version="v1"),
    short_names=("sa",),
)  # fmt: skip
CONFIG_MAPS = _core("ConfigMap", "configmaps", short_names=("cm",))
SECRETS = _core("Secret", "secrets")
EVENTS = _core("Event", "events", short_names=("ev",))
ENDPOINTS = _core("Endpoints", "endpoints", short_names=("ep",))
PERSISTENT_VOLUMES = _core(
    "PersistentVolume", "persistentvolumes", STATUS, short_names=("pv",), **_CLUSTER
)
PERSISTENT_VOLUME_CLAIMS = _core(
    "PersistentVolumeClaim", "persistentvolumeclaims", STATUS, short_names=("pvc",)
)
REPLICATION_CONTROLLERS = _core(
    "ReplicationController", "replicationcontrollers", SCALE, STATUS,
    short_names=("rc",), categories=_ALL,
)  # fmt: skip
LIMIT_RANGES = _core("LimitRange", "limitranges", short_names=("limits",))
RESOURCE_QUOTAS = _core("ResourceQuota", "resourcequotas", STATUS, short_names=("quota",))
POD_TEMPLATES = _core("PodTemplate", "podtemplates")
BINDINGS = _core("Binding", "bindings", **_REVIEW)
COMPONENT_STATUSES = _core(
    "ComponentStatus", "componentstatuses", short_names=("cs",), verbs=("get", "list"), **_CLUSTER
)

DEPLOYMENTS = _row(
    "apps", "v1", "Deployment", "deployments", SCALE, STATUS,
    short_names=("deploy",), categories=_ALL,
)  # fmt: skip
REPLICA_SETS = _row(
    "apps", "v1", "ReplicaSet", "replicasets", SCALE, STATUS, short_names=("rs",), categories=_ALL
)
STATEFUL_SETS = _row(
    "apps", "v1", "StatefulSet", "statefulsets", SCALE, STATUS,
    short_names=("sts",), categories=_ALL,
)  # fmt: skip
DAEMON_SETS = _row(
    "apps", "v1", "DaemonSet", "daemonsets", STATUS, short_names=("ds",), categories=_ALL
)
CONTROLLER_REVISIONS = _row("apps", "v1", "ControllerRevision", "controllerrevisions")
JOBS = _row("batch", "v1", "Job", "jobs", STATUS, categories=_ALL)
CRON_JOBS = _row("batch", "v1", "CronJob", "cronjobs", STATUS, short_names=("cj",), categories=_ALL)
HORIZONTAL_POD_AUTOSCALERS = _row(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", STATUS,
    short_names=("hpa",), categories=_ALL,
)  # fmt: skip
LEASES = _row("coordination.k8s.io", "v1", "Lease", "leases")
ENDPOINT_SLICES = _row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
EVENTS_V1 = _row(
    "events.k8s.io", "v1", "Event", "events", short_names=("ev",), stored_as=("", "v1")
)
POD_DISRUPTION_BUDGETS = _row(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", STATUS, short_names=("pdb",)
)
PRIORITY_CLASSES = _row(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", short_names=("pc",), **_CLUSTER
)
VOLUME_ATTRIBUTES_CLASSES = _row(
    "storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses",
    short_names=("vac",), **_CLUSTER, **_VERSIONS,
)  # fmt: skip
STORAGE_CLASSES = _row(
    "storage.k8s.io", "v1", "StorageClass", "storageclasses", short_names=("sc",), **_CLUSTER
)
SERVICE_CIDRS = _row(
    "networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", STATUS, **_CLUSTER, **_VERSIONS
)  # fmt: skip
IP_ADDRESSES = _row(
    "networking.k8s.io", "v1", "IPAddress", "ipaddresses", short_names=("ip",),
    **_CLUSTER, **_VERSIONS,
)  # fmt: skip
VALIDATING_ADMISSION_POLICIES = _row(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies", STATUS, categories=_EXTENSIONS, **_CLUSTER,
)  # fmt: skip
VALIDATING_POLICY_BINDINGS = _row(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings", categories=_EXTENSIONS, **_CLUSTER,
)  # fmt: skip
MUTATING_ADMISSION_POLICIES = _row(
    "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies", categories=_EXTENSIONS, **_CLUSTER, **_VERSIONS,
)  # fmt: skip
MUTATING_POLICY_BINDINGS = _row(
    "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings", categories=_EXTENSIONS, **_CLUSTER, **_VERSIONS,
)  # fmt: skip
MUTATING_WEBHOOK_CONFIGURATIONS = _row(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations", categories=_EXTENSIONS, **_CLUSTER,
)  # fmt: skip
VALIDATING_WEBHOOK_CONFIGURATIONS = _row(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations", categories=_EXTENSIONS, **_CLUSTER,
)  # fmt: skip
CSI_NODES = _row("storage.k8s.io", "v1", "CSINode", "csinodes", STATUS, **_CLUSTER)
CSI_DRIVERS = _row("storage.k8s.io", "v1", "CSIDriver", "csidrivers", **_CLUSTER)
VOLUME_ATTACHMENTS = _row(
    "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", STATUS, **_CLUSTER
)  # fmt: skip
CSI_STORAGE_CAPACITIES = _row(
    "storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities"
)  # fmt: skip
DEVICE_CLASSES = _row(
    "resource.k8s.io", "v1", "DeviceClass", "deviceclasses", **_CLUSTER, **_VERSIONS
)
RESOURCE_CLAIMS = _row(
    "resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", STATUS, **_VERSIONS
)
RESOURCE_CLAIM_TEMPLATES = _row(
    "resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", **_VERSIONS
)
RESOURCE_SLICES = _row(
    "resource.k8s.io", "v1", "ResourceSlice", "resourceslices", **_CLUSTER, **_VERSIONS
)
DEVICE_TAINT_RULES = _row(
    "resource.k8s.io", "v1", "DeviceTaintRule", "devicetaintrules", STATUS, **_CLUSTER, **_VERSIONS
)
STORAGE_VERSION_MIGRATIONS = _row(
    "storagemigration.k8s.io", "v1", "StorageVersionMigration", "storageversionmigrations", STATUS,
    **_CLUSTER, **_VERSIONS,
)  # fmt: skip
RUNTIME_CLASSES = _row("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", **_CLUSTER)
CUSTOM_RESOURCE_DEFINITIONS = _row(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", STATUS,
    short_names=("crd", "crds"), categories=_EXTENSIONS, **_CLUSTER,
)  # fmt: skip
# Answered from what the nodes say at that moment; nothing of them is stored.
_MEASURED = ("get", "list")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False, verbs=_MEASURED)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", verbs=_MEASURED)
MEASURED = (NODE_METRICS, POD_METRICS)
API_SERVICES = _row(
    "apiregistration.k8s.io", "v1", "APIService", "apiservices", STATUS,
    categories=_EXTENSIONS, **_CLUSTER,
)  # fmt: skip
CLUSTER_TRUST_BUNDLES = _row(
    "certificates.k8s.io", "v1", "ClusterTrustBundle", "clustertrustbundles",
    **_CLUSTER, **_VERSIONS,
)  # fmt: skip
POD_CERTIFICATE_REQUESTS = _row(
    "certificates.k8s.io", "v1", "PodCertificateRequest", "podcertificaterequests", STATUS,
    **_VERSIONS,
)  # fmt: skip
INGRESS_CLASSES = _row("networking.k8s.io", "v1", "IngressClass", "ingressclasses", **_CLUSTER)
INGRESSES = _row("networking.k8s.io", "v1", "Ingress", "ingresses", STATUS, short_names=("ing",))

# Every row there is; which of them are served: api/served.py.
RESOURCES: tuple[Resource, ...] = (
    BINDINGS, COMPONENT_STATUSES, CONFIG_MAPS, ENDPOINTS, EVENTS, LIMIT_RANGES, NAMESPACES, NODES,
    PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, POD_TEMPLATES, REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS, SECRETS, SERVICE_ACCOUNTS, SERVICES,
    API_SERVICES,
    CONTROLLER_REVISIONS, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS,
    EVENTS_V1,
    _row("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews",
         **_CLUSTER, **_REVIEW),
    _row("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", **_CLUSTER, **_REVIEW),
    _row("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews",
         **_REVIEW),
    _row("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
         **_CLUSTER, **_REVIEW),
    _row("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews",
         **_CLUSTER, **_REVIEW),
    _row("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews",
         **_CLUSTER, **_REVIEW),
    HORIZONTAL_POD_AUTOSCALERS,
    _row("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", STATUS,
         short_names=("hpa",), categories=_ALL, stored_as=("autoscaling", "v2")),
    CRON_JOBS, JOBS,
    _row("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests",
         Subresource("approval"), STATUS, short_names=("csr",), **_CLUSTER),
    *(
        row if version == "v1" else _in(version, row)
        for row in (CLUSTER_TRUST_BUNDLES, POD_CERTIFICATE_REQUESTS)
        for version in ("v1", "v1beta1", "v1alpha1")
    ),
    INGRESS_CLASSES,
    INGRESSES,
    IP_ADDRESSES, _in("v1beta1", IP_ADDRESSES),
    _row("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short_names=("netpol",)),
    SERVICE_CIDRS, _in("v1beta1", SERVICE_CIDRS),
    POD_DISRUPTION_BUDGETS,
    _row("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings",
         **_CLUSTER),
    _row("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", **_CLUSTER),
    _row("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    _row("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_ATTRIBUTES_CLASSES, _in("v1beta1", VOLUME_ATTRIBUTES_CLASSES),
    _in("v1alpha1", VOLUME_ATTRIBUTES_CLASSES),
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    MUTATING_ADMISSION_POLICIES, MUTATING_POLICY_BINDINGS,
    _in("v1beta1", MUTATING_ADMISSION_POLICIES), _in("v1beta1", MUTATING_POLICY_BINDINGS),
    _in("v1alpha1", MUTATING_ADMISSION_POLICIES), _in("v1alpha1", MUTATING_POLICY_BINDINGS),
    CUSTOM_RESOURCE_DEFINITIONS,
    PRIORITY_CLASSES, LEASES, RUNTIME_CLASSES, ENDPOINT_SLICES,
    _row("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", STATUS, **_CLUSTER),
    _row("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
         "prioritylevelconfigurations", STATUS, **_CLUSTER),
    *(
        row if version == "v1" else _in(version, row)
        for row in (DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES)
        for version in ("v1", "v1beta2", "v1beta1")
    ),
    DEVICE_TAINT_RULES, _in("v1beta2", DEVICE_TAINT_RULES), _in("v1alpha3", DEVICE_TAINT_RULES),
    STORAGE_VERSION_MIGRATIONS, _in("v1beta1", STORAGE_VERSION_MIGRATIONS),
)  # fmt: skip

_BY_PLURAL = {(row.group, row.version, row.plural): row for row in (*RESOURCES, *MEASURED)}
_BY_KIND = {(row.group, row.version, row.kind): row for row in RESOURCES}
assert len(_BY_PLURAL) == len(RESOURCES) + len(MEASURED), (
    "two rows with one group, version and plural"
)


def by_plural(group: str, version: str, plural: str) -> Resource | None:
    return _BY_PLURAL.get((group, version, plural))


def by_kind(api_version: str, kind: str) -> Resource | None:
    group, _, version = api_version.rpartition("/")
    return _BY_KIND.get((group, version, kind))


# Asked and answered, never stored: who kept admission busy with them could lock a cluster out of
# its own way in.
QUESTIONS = frozenset({
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
})  # fmt: skip
