"""The table of the kinds' own columns.

Job: from a group and plural to its printer; a kind without a row shows its name and its age.
To give a kind columns of its own: write its cells in a file beside this one, and add a line here.
"""

from sampan.api import features
from sampan.apiserver.printers import access, cluster, network, pods, storage, workloads
from sampan.apiserver.printers.layout import Printer

_ADMISSION, _APPS, _BATCH = "admissionregistration.k8s.io", "apps", "batch"
_FLOW, _NETWORKING = "flowcontrol.apiserver.k8s.io", "networking.k8s.io"
_RBAC, _RESOURCE, _STORAGE = "rbac.authorization.k8s.io", "resource.k8s.io", "storage.k8s.io"

PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "componentstatuses"): cluster.COMPONENT_STATUSES,
    ("", "configmaps"): cluster.CONFIG_MAPS,
    ("", "endpoints"): network.ENDPOINTS,
    ("", "events"): cluster.EVENTS,
    ("", "namespaces"): cluster.NAMESPACES,
    ("", "nodes"): cluster.NODES,
    ("", "persistentvolumeclaims"): storage.CLAIMS,
    ("", "persistentvolumes"): storage.VOLUMES,
    ("", "pods"): pods.PODS,
    ("", "podtemplates"): pods.POD_TEMPLATES,
    ("", "replicationcontrollers"): workloads.REPLICATION_CONTROLLERS,
    ("", "resourcequotas"): cluster.RESOURCE_QUOTAS,
    ("", "secrets"): cluster.SECRETS,
    ("", "serviceaccounts"): cluster.SERVICE_ACCOUNTS,
    ("", "services"): network.SERVICES,
    (_ADMISSION, "mutatingadmissionpolicies"): access.MUTATING_POLICIES,
    (_ADMISSION, "mutatingadmissionpolicybindings"): access.POLICY_BINDINGS,
    (_ADMISSION, "mutatingwebhookconfigurations"): access.WEBHOOKS,
    (_ADMISSION, "validatingwebhookconfigurations"): access.WEBHOOKS,
    (_ADMISSION, "validatingadmissionpolicies"): access.POLICIES,
    (_ADMISSION, "validatingadmissionpolicybindings"): access.POLICY_BINDINGS,
    ("apiregistration.k8s.io", "apiservices"): access.API_SERVICES,
    (_APPS, "controllerrevisions"): workloads.CONTROLLER_REVISIONS,
    (_APPS, "daemonsets"): workloads.DAEMON_SETS,
    (_APPS, "deployments"): workloads.DEPLOYMENTS,
    (_APPS, "replicasets"): workloads.REPLICA_SETS,
    (_APPS, "statefulsets"): workloads.STATEFUL_SETS,
    ("autoscaling", "horizontalpodautoscalers"): workloads.AUTOSCALERS,
    # What the scale subresource gives, of kinds of the API and of custom ones.
    ("autoscaling", "scales"): workloads.SCALES,
    ("autoscaling", "customscales"): workloads.CUSTOM_SCALES,
    (_BATCH, "cronjobs"): workloads.CRON_JOBS,
    (_BATCH, "jobs"): workloads.JOBS,
    ("certificates.k8s.io", "certificatesigningrequests"): access.SIGNING_REQUESTS,
    ("certificates.k8s.io", "clustertrustbundles"): access.TRUST_BUNDLES,
    ("certificates.k8s.io", "podcertificaterequests"): access.POD_CERTIFICATES,
    ("coordination.k8s.io", "leases"): cluster.LEASES,
    ("discovery.k8s.io", "endpointslices"): network.ENDPOINT_SLICES,
    ("events.k8s.io", "events"): cluster.EVENTS,
    (_FLOW, "flowschemas"): access.FLOW_SCHEMAS,
    (_FLOW, "prioritylevelconfigurations"): access.PRIORITY_LEVELS,
    (_NETWORKING, "ingressclasses"): network.INGRESS_CLASSES,
    (_NETWORKING, "ingresses"): network.INGRESSES,
    (_NETWORKING, "ipaddresses"): network.IP_ADDRESSES,
    (_NETWORKING, "networkpolicies"): network.NETWORK_POLICIES,
    (_NETWORKING, "servicecidrs"): network.SERVICE_CIDRS,
    ("node.k8s.io", "runtimeclasses"): cluster.RUNTIME_CLASSES,
    ("policy", "poddisruptionbudgets"): workloads.DISRUPTION_BUDGETS,
    (_RBAC, "clusterrolebindings"): access.BINDINGS,
    (_RBAC, "rolebindings"): access.BINDINGS,
    (_RESOURCE, "deviceclasses"): storage.JUST_AGE,
    (_RESOURCE, "devicetaintrules"): storage.DEVICE_TAINT_RULES,
    (_RESOURCE, "resourceclaims"): storage.RESOURCE_CLAIMS,
    (_RESOURCE, "resourceclaimtemplates"): storage.JUST_AGE,
    (_RESOURCE, "resourceslices"): storage.RESOURCE_SLICES,
    ("scheduling.k8s.io", "priorityclasses"): cluster.PRIORITY_CLASSES,
    (_STORAGE, "csidrivers"): storage.CSI_DRIVERS,
    (_STORAGE, "csinodes"): storage.CSI_NODES,
    (_STORAGE, "storageclasses"): storage.STORAGE_CLASSES,
    (_STORAGE, "volumeattachments"): storage.ATTACHMENTS,
    (_STORAGE, "volumeattributesclasses"): storage.ATTRIBUTES_CLASSES,
    ("storagemigration.k8s.io", "storageversionmigrations"): storage.MIGRATIONS,
}


def printer_of(group: str, plural: str) -> Printer | None:
    """None where a kind has no columns of its own."""
    match group, plural:
        case "", "serviceaccounts" if features.changed("AccountsWithoutSecretsColumn"):
            return storage.JUST_AGE
        case "apiextensions.k8s.io", "customresourcedefinitions" if features.changed(
            "DefinitionColumns"
        ):
            return access.DEFINITIONS
    return PRINTERS.get((group, plural))
