"""Descriptions of table columns.

Job: from a kind and a column's name to its description: the documentation of the field that it
    shows, as published, or words of the table's own. Pure.
Invariant: of the published prose only what columns show is kept.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sampan.api.features import release
from sampan.api.schema.published import Schema
from sampan.apiserver.printers.layout import CREATED, NAMED, Column, Field

Descriptions = Mapping[str, str | Field]  # by the name of the column


def _shown(definition: str, fields: Mapping[str, str]) -> dict[str, str | Field]:
    """Columns that show fields of one definition."""
    return {column: Field(definition, field) for column, field in fields.items()}


_TEMPLATE: Descriptions = {
    "Containers": "Names of each container in the template.",
    "Images": "Images referenced by each container in the template.",
}
_READY: Descriptions = {"Ready": "Number of the pod with ready state"}
_WEBHOOKS: Descriptions = {
    "Webhooks": "Webhooks indicates the number of webhooks registered in this configuration"
}
_PARAM_KIND: Descriptions = {
    "ParamKind": "ParamKind specifies the kind of resources used to parameterize this policy"
}
_POLICY_BINDINGS: Descriptions = {
    "PolicyName": "PolicyName indicates the policy definition which the policy binding binded to",
    "ParamRef": "ParamRef indicates the param resource which sets the configuration param",
}
_EVENTS: Descriptions = {
    **_shown(
        "api.core.v1.Event",
        {"Last Seen": "lastTimestamp", "Type": "type", "Reason": "reason",
         "Object": "involvedObject", "Source": "source", "Message": "message",
         "First Seen": "firstTimestamp", "Count": "count"},
    ),
    "Subobject": Field("api.core.v1.ObjectReference", "fieldPath"),
}  # fmt: skip
_POD_SPEC, _POD_STATUS = "api.core.v1.PodSpec", "api.core.v1.PodStatus"
_CLAIM_SPEC, _CLAIM_STATUS = (
    f"api.core.v1.PersistentVolumeClaim{part}" for part in ("Spec", "Status")
)
_VOLUME_SPEC, _VOLUME_STATUS = (
    f"api.core.v1.PersistentVolume{part}" for part in ("Spec", "Status")
)
_CORE: dict[str, Descriptions] = {
    "componentstatuses": {
        "Status": "Status of the component conditions",
        "Message": "Message of the component conditions",
        "Error": "Error of the component conditions",
    },
    "configmaps": {"Data": Field("api.core.v1.ConfigMap", "data")},
    "endpoints": {"Endpoints": Field("api.core.v1.Endpoints", "subsets")},
    "events": _EVENTS,
    "namespaces": {"Status": "The status of the namespace"},
    "nodes": {
        "Status": "The status of the node",
        "Roles": "The roles of the node",
        "Internal-IP": Field("api.core.v1.NodeStatus", "addresses"),
        "External-IP": Field("api.core.v1.NodeStatus", "addresses"),
        **_shown(
            "api.core.v1.NodeSystemInfo",
            {"Version": "kubeletVersion", "OS-Image": "osImage", "Kernel-Version": "kernelVersion",
             "Container-Runtime": "containerRuntimeVersion"},
        ),
    },
    "persistentvolumeclaims": {
        **_shown(
            _CLAIM_STATUS,
            {"Status": "phase", "Capacity": "capacity", "Access Modes": "accessModes"},
        ),
        **_shown(_CLAIM_SPEC, {"Volume": "volumeName", "VolumeMode": "volumeMode"}),
        "StorageClass": "StorageClass of the pvc",
        "VolumeAttributesClass": "VolumeAttributesClass of the pvc",
    },
    "persistentvolumes": {
        **_shown(
            _VOLUME_SPEC,
            {"Capacity": "capacity", "Access Modes": "accessModes", "Claim": "claimRef",
             "Reclaim Policy": "persistentVolumeReclaimPolicy", "VolumeMode": "volumeMode"},
        ),
        **_shown(_VOLUME_STATUS, {"Status": "phase", "Reason": "reason"}),
        "StorageClass": "StorageClass of the pv",
        "VolumeAttributesClass": "VolumeAttributesClass of the pv",
    },
    "pods": {
        "Ready": "The aggregate readiness state of this pod for accepting traffic.",
        "Status": "The aggregate status of the containers in this pod.",
        "Restarts": "The number of times the containers in this pod have been restarted and when "
        "the last container in this pod has restarted.",
        **_shown(_POD_STATUS, {"IP": "podIP", "Nominated Node": "nominatedNodeName"}),
        **_shown(_POD_SPEC, {"Node": "nodeName", "Readiness Gates": "readinessGates"}),
    },
    "podtemplates": {**_TEMPLATE, "Pod Labels": "The labels for the pod template."},
    "replicationcontrollers": {
        **_TEMPLATE,
        **_shown(
            "api.core.v1.ReplicationControllerSpec", {"Desired": "replicas", "Selector": "selector"}
        ),
        **_shown(
            "api.core.v1.ReplicationControllerStatus",
            {"Current": "replicas", "Ready": "readyReplicas"},
        ),
    },
    "resourcequotas": {
        "Request": "Request represents a minimum amount of cpu/memory that a container may "
        "consume.",
        "Limit": "Limits control the maximum amount of cpu/memory that a container may use "
        "independent of contention on the node.",
    },
    "secrets": _shown("api.core.v1.Secret", {"Type": "type", "Data": "data"}),
    "services": _shown(
        "api.core.v1.ServiceSpec",
        {"Type": "type", "Cluster-IP": "clusterIP", "External-IP": "externalIPs",
         "Port(s)": "ports", "Selector": "selector"},
    ),
}  # fmt: skip
_ADMISSION: dict[str, Descriptions] = {
    "mutatingadmissionpolicies": {
        "Mutations": "Mutation indicates the number of mutations rules defined in this "
        "configuration",
        **_PARAM_KIND,
    },
    "mutatingadmissionpolicybindings": _POLICY_BINDINGS,
    "mutatingwebhookconfigurations": _WEBHOOKS,
    "validatingwebhookconfigurations": _WEBHOOKS,
    "validatingadmissionpolicies": {
        "Validations": "Validations indicates the number of validation rules defined in this "
        "configuration",
        **_PARAM_KIND,
    },
    "validatingadmissionpolicybindings": _POLICY_BINDINGS,
}
_MATCHED = " It must match the pod template's labels."
# Some tables still say what a field meant in a version that is no longer served: the words that
# came later are cut off, and what was worded otherwise is said here.
_APPS: dict[str, Descriptions] = {
    "controllerrevisions": {
        "Controller": "Controller of the object",
        "Revision": "revision indicates the revision of the state represented by Data.",
    },
    "daemonsets": {
        **_TEMPLATE,
        **_shown(
            "api.apps.v1.DaemonSetStatus",
            {"Desired": "desiredNumberScheduled", "Current": "currentNumberScheduled",
             "Up-to-date": "updatedNumberScheduled", "Available": "numberAvailable"},
        ),
        "Ready": "The number of nodes that should be running the daemon pod and have one or more "
        "of the daemon pod running and ready.",
        "Node Selector": Field(_POD_SPEC, "nodeSelector"),
        "Selector": "A label query over pods that are managed by the daemon set. Must match in "
        "order to be controlled. If empty, defaulted to labels on Pod template. More info: "
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
    },
    "deployments": {
        **_TEMPLATE,
        **_READY,
        **_shown(
            "api.apps.v1.DeploymentStatus",
            {"Up-to-date": "updatedReplicas", "Available": "availableReplicas"},
        ),
        "Selector": Field("api.apps.v1.DeploymentSpec", "selector", until=_MATCHED),
    },
    "replicasets": {
        **_TEMPLATE,
        "Desired": Field("api.apps.v1.ReplicaSetSpec", "replicas"),
        **_shown(
            "api.apps.v1.ReplicaSetStatus", {"Current": "replicas", "Ready": "readyReplicas"}
        ),
        "Selector": "Selector is a label query over pods that should match the replica count. If "
        "the selector is empty, it is defaulted to the labels present on the pod template. Label "
        "keys and values that must match in order to be controlled by this replica set. More "
        "info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
        "#label-selectors",
    },
    "statefulsets": {**_TEMPLATE, **_READY},
}  # fmt: skip
_SCALER = "api.autoscaling.v2.HorizontalPodAutoscaler"
_AUTOSCALING: dict[str, Descriptions] = {
    "horizontalpodautoscalers": {
        **_shown(
            f"{_SCALER}Spec",
            {"Reference": "scaleTargetRef", "MinPods": "minReplicas", "MaxPods": "maxReplicas"},
        ),
        "Targets": Field(f"{_SCALER}Spec", "metrics", until=" If not set,"),
        "Replicas": Field(f"{_SCALER}Status", "currentReplicas"),
    },
    "scales": {
        "Desired": Field("api.autoscaling.v1.ScaleSpec", "replicas"),
        "Available": Field("api.autoscaling.v1.ScaleStatus", "replicas"),
    },
}
_BATCH: dict[str, Descriptions] = {
    "cronjobs": {
        **_TEMPLATE,
        **_shown(
            "api.batch.v1.CronJobSpec",
            {"Schedule": "schedule", "Timezone": "timeZone", "Suspend": "suspend"},
        ),
        **_shown(
            "api.batch.v1.CronJobStatus", {"Active": "active", "Last Schedule": "lastScheduleTime"}
        ),
        "Selector": Field("api.batch.v1.JobSpec", "selector"),
    },
    "jobs": {
        **_TEMPLATE,
        "Status": "Status of the job.",
        "Completions": Field("api.batch.v1.JobStatus", "succeeded"),
        "Duration": "Time required to complete the job.",
        "Selector": Field("api.batch.v1.JobSpec", "selector"),
    },
}
_CERTIFICATES: dict[str, Descriptions] = {
    "certificatesigningrequests": {
        "SignerName": "Requested signer for the request. It is a qualified name in the form: "
        "`scope-hostname.io/name`. If empty, it will be defaulted:\n"
        " 1. If it's a kubelet client certificate, it is assigned\n"
        '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
        " 2. If it's a kubelet serving certificate, it is assigned\n"
        '    "kubernetes.io/kubelet-serving".\n'
        ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
        "Distribution of trust for signers happens out of band. You can select on this field "
        "using `spec.signerName`.",
        "Requestor": "Base64-encoded PKCS#10 CSR data",
        "RequestedDuration": Field(
            "api.certificates.v1.CertificateSigningRequestSpec", "expirationSeconds"
        ),
        "Condition": "Conditions applied to the request, such as approval or denial.",
    },
    "clustertrustbundles": {
        "SignerName": Field("api.certificates.v1beta1.ClusterTrustBundleSpec", "signerName")
    },
    "podcertificaterequests": {
        **_shown(
            "api.certificates.v1beta1.PodCertificateRequestSpec",
            {"PodName": "podName", "ServiceAccountName": "serviceAccountName",
             "NodeName": "nodeName", "SignerName": "signerName",
             "UnverifiedUserAnnotations": "unverifiedUserAnnotations"},
        ),
        "State": "Is the request Pending, Issued, Denied, or Failed?",
    },
}  # fmt: skip
_SLICE = "api.discovery.v1.EndpointSlice"
_DISCOVERY: dict[str, Descriptions] = {
    "endpointslices": {
        "AddressType": Field(_SLICE, "addressType", until=" (Deprecated)"),
        "Ports": "ports specifies the list of network ports exposed by each endpoint in this "
        "slice. Each port must have a unique name. When ports is empty, it indicates that there "
        "are no defined ports. When a port is defined with a nil port value, it indicates "
        '"all ports". Each slice may include a maximum of 100 ports.',
        "Endpoints": Field(_SLICE, "endpoints"),
    }
}
_FLOW: dict[str, Descriptions] = {
    "flowschemas": {
        "PriorityLevel": Field("api.flowcontrol.v1.PriorityLevelConfigurationReference", "name"),
        **_shown(
            "api.flowcontrol.v1.FlowSchemaSpec",
            {"MatchingPrecedence": "matchingPrecedence",
             "DistinguisherMethod": "distinguisherMethod"},
        ),
        "MissingPL": "references a broken or non-existent PriorityLevelConfiguration",
    },
    "prioritylevelconfigurations": {
        "Type": Field("api.flowcontrol.v1.PriorityLevelConfigurationSpec", "type"),
        "NominalConcurrencyShares": Field(
            "api.flowcontrol.v1.LimitedPriorityLevelConfiguration", "nominalConcurrencyShares"
        ),
        **_shown(
            "api.flowcontrol.v1.QueuingConfiguration",
            {"Queues": "queues", "HandSize": "handSize", "QueueLengthLimit": "queueLengthLimit"},
        ),
    },
}  # fmt: skip
_NETWORKING: dict[str, Descriptions] = {
    "ingressclasses": {
        "Controller": "Controller that is responsible for handling this class",
        "Parameters": "A reference to a resource with additional parameters",
    },
    "ingresses": {
        "Class": "The name of the IngressClass resource that should be used for additional "
        "configuration",
        "Hosts": "Hosts that incoming requests are matched against before the ingress rule",
        "Address": "Address is a list containing ingress points for the load-balancer",
        "Ports": "Ports of TLS configurations that open",
    },
    "ipaddresses": {"ParentRef": Field("api.networking.v1.IPAddressSpec", "parentRef")},
    "networkpolicies": {
        "Pod-Selector": "Selects the pods to which this NetworkPolicy object applies.  The array "
        "of ingress rules is applied to any pods selected by this field. Multiple network policies "
        "can select the same set of pods.  In this case, the ingress rules for each are combined "
        "additively. This field is NOT optional and follows standard label selector semantics. An "
        "empty podSelector matches all pods in this namespace."
    },
    "servicecidrs": {"CIDRs": Field("api.networking.v1.ServiceCIDRSpec", "cidrs")},
}


def _binding(kind: str) -> Descriptions:
    subjects = ("Users", "Groups", "ServiceAccounts")
    said = f"{kind[0].lower()}{kind[1:]}"
    return {
        "Role": Field(f"api.rbac.v1.{kind}", "roleRef", until=" This field is immutable."),
        **{column: f"{column} in the {said}" for column in subjects},
    }


_STORAGE: dict[str, Descriptions] = {
    "csidrivers": _shown(
        "api.storage.v1.CSIDriverSpec",
        {"AttachRequired": "attachRequired", "PodInfoOnMount": "podInfoOnMount",
         "StorageCapacity": "storageCapacity", "TokenRequests": "tokenRequests",
         "RequiresRepublish": "requiresRepublish", "Modes": "volumeLifecycleModes"},
    ),
    "csinodes": {
        "Drivers": "Drivers indicates the number of CSI drivers registered on the node"
    },
    "storageclasses": _shown(
        "api.storage.v1.StorageClass",
        {"Provisioner": "provisioner", "ReclaimPolicy": "reclaimPolicy",
         "VolumeBindingMode": "volumeBindingMode",
         "AllowVolumeExpansion": "allowVolumeExpansion"},
    ),
    "volumeattachments": {
        **_shown(
            "api.storage.v1.VolumeAttachmentSpec", {"Attacher": "attacher", "Node": "nodeName"}
        ),
        "PV": Field("api.storage.v1.VolumeAttachmentSource", "persistentVolumeName"),
        "Attached": Field("api.storage.v1.VolumeAttachmentStatus", "attached"),
    },
    "volumeattributesclasses": {
        "DriverName": Field("api.storage.v1.VolumeAttributesClass", "driverName")
    },
}  # fmt: skip
_DESCRIBED: dict[str, dict[str, Descriptions]] = {
    "": _CORE,
    "admissionregistration.k8s.io": _ADMISSION,
    "apiregistration.k8s.io": {
        "apiservices": {
            "Service": "The reference to the service that hosts this API endpoint.",
            "Available": "Whether this service is available.",
        }
    },
    "apps": _APPS,
    "autoscaling": _AUTOSCALING,
    "batch": _BATCH,
    "certificates.k8s.io": _CERTIFICATES,
    "coordination.k8s.io": {
        "leases": {"Holder": Field("api.coordination.v1.LeaseSpec", "holderIdentity")}
    },
    "discovery.k8s.io": _DISCOVERY,
    "events.k8s.io": {"events": _EVENTS},
    "flowcontrol.apiserver.k8s.io": _FLOW,
    "networking.k8s.io": _NETWORKING,
    "policy": {
        "poddisruptionbudgets": {
            "Min Available": "The minimum number of pods that must be available.",
            "Max Unavailable": "The maximum number of pods that may be unavailable.",
            "Allowed Disruptions": "Calculated number of pods that may be disrupted at this time.",
        }
    },
    "rbac.authorization.k8s.io": {
        "clusterrolebindings": _binding("ClusterRoleBinding"),
        "rolebindings": _binding("RoleBinding"),
    },
    "resource.k8s.io": {
        "devicetaintrules": _shown(
            "api.resource.v1.DeviceTaint",
            {"Key": "key", "Value": "value", "Effect": "effect", "TimeAdded": "timeAdded"},
        ),
        "resourceclaims": {
            "State": "A summary of the current state (allocated, pending, reserved, etc.)."
        },
        "resourceslices": {
            **_shown("api.resource.v1.ResourceSliceSpec", {"Node": "nodeName", "Driver": "driver"}),
            "Pool": Field("api.resource.v1.ResourcePool", "name"),
        },
    },
    "scheduling.k8s.io": {
        "priorityclasses": _shown(
            "api.scheduling.v1.PriorityClass",
            {"Value": "value", "Global-Default": "globalDefault",
             "PreemptionPolicy": "preemptionPolicy"},
        )
    },
    "storage.k8s.io": _STORAGE,
    "storagemigration.k8s.io": {
        "storageversionmigrations": {
            "Resource": "GroupResource to migrate",
            "Status": "Status of the migration",
        }
    },
}  # fmt: skip


def description_of(column: Column, group: str, plural: str) -> str:
    """Empty where nothing is said of a column."""
    about = column.description or _DESCRIBED.get(group, {}).get(plural, {}).get(column.name, "")
    return _field_texts(release().minor)[about] if isinstance(about, Field) else about


@lru_cache(maxsize=1)
def _field_texts(minor: str) -> dict[Field, str]:
    """Of every field that a column shows, as that version of Kubernetes documents it."""
    prose = Schema.load(minor).explanations()
    shown = {
        about
        for kinds in _DESCRIBED.values()
        for words in kinds.values()
        for about in words.values()
        if isinstance(about, Field)
    }
    return {field: _text(prose, field) for field in (NAMED, CREATED, *shown)}


def _text(prose: Mapping[str, Any], field: Field) -> str:
    _, texts = prose.get(f"io.k8s.{field.definition}", ("", {}))
    said: str = texts.get(field.name, "")
    return said.partition(field.until)[0] if field.until else said
