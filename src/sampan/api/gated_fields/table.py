"""Which fields are behind which feature gate.

Job: the table, by gate and group resource, as upstream's strategies have it (dropDisabledFields).
To put a field behind a gate: a line here.
"""

from collections.abc import Mapping

# What holds a pod's spec, by group resource.
POD_SPECS = {
    "pods": "spec",
    "podtemplates": "template.spec",
    "replicationcontrollers": "spec.template.spec",
    "daemonsets.apps": "spec.template.spec",
    "deployments.apps": "spec.template.spec",
    "replicasets.apps": "spec.template.spec",
    "statefulsets.apps": "spec.template.spec",
    "jobs.batch": "spec.template.spec",
    "cronjobs.batch": "spec.jobTemplate.spec.template.spec",
}
_CONTAINERS = ("containers[]", "initContainers[]", "ephemeralContainers[]")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_STATUSES = (
    "status.containerStatuses[]", "status.initContainerStatuses[]",
    "status.ephemeralContainerStatuses[]",
)  # fmt: skip
_DEVICE = "spec.devices[]"
_REQUESTS = ("devices.requests[].exactly", "devices.requests[].firstAvailable[]")
_RESULT = "status.allocation.devices.results[]"
_SLICES, _CLASSES = "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io"
_CLAIMS, _TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
_DRIVERS = "csidrivers.storage.k8s.io"
_SPREAD = "topologySpreadConstraints[]"

Paths = tuple[str, ...]


def _in_containers(*fields: str) -> Paths:
    return tuple(f"{container}.{field}" for container in _CONTAINERS for field in fields)


# Of a pod's spec, wherever it is. More are in pod_fields.py: where it takes more than a field.
POD_FIELDS: Mapping[str, Paths] = {
    "ClusterTrustBundleProjection": ("volumes[].projected.sources[].clusterTrustBundle",),
    "EmptyDirVolumeMode": ("volumes[].emptyDir.mode",),
    "EnvFiles": _in_containers("env[].valueFrom.fileKeyRef"),
    "EvictionRequestAPI": ("evictionResponders",),
    "GRPCContainerProbeTLS": _in_containers(*(f"{probe}.grpc.mode" for probe in _PROBES)),
    "GenericWorkload": ("workloadRef", "schedulingGroup"),
    "H2CContainerProbe": _in_containers(
        *(f"{probe}.httpGet.protocol" for probe in _PROBES),
        "lifecycle.postStart.httpGet.protocol",
        "lifecycle.preStop.httpGet.protocol",
    ),
    "HostnameOverride": ("hostnameOverride",),
    "MatchLabelKeysInPodTopologySpread": (f"{_SPREAD}.matchLabelKeys",),
    "PodCertificateRequest": ("volumes[].projected.sources[].podCertificate",),
    "PodLevelResources": ("resources",),
    "SELinuxChangePolicy": ("securityContext.seLinuxChangePolicy",),
    "SupplementalGroupsPolicy": ("securityContext.supplementalGroupsPolicy",),
    "UserNamespacesSupport": ("hostUsers",),
    "VolumeBindMountOptions": _in_containers("volumeMounts[].bindMountOptions"),
}

# Gate → group resource → places.
FIELDS: Mapping[str, Mapping[str, Paths]] = {
    "CSIServiceAccountTokenSecrets": {_DRIVERS: ("spec.serviceAccountTokenInSecrets",)},
    "CSIVolumeHealth": {
        "persistentvolumeclaims": ("status.healthStatus",), "pods": ("status.volumeHealth",),
    },
    "CoordinatedLeaderElection": {
        "leases.coordination.k8s.io": ("spec.strategy", "spec.preferredHolder"),
    },
    "DRAAdminAccess": {
        _CLAIMS: ("spec.devices.requests[].exactly.adminAccess", f"{_RESULT}.adminAccess"),
        _TEMPLATES: ("spec.spec.devices.requests[].exactly.adminAccess",),
    },
    "DRAConsumableCapacity": {
        _SLICES: (f"{_DEVICE}.allowMultipleAllocations", f"{_DEVICE}.capacity{{}}.requestPolicy"),
        _CLAIMS: (
            "spec.devices.constraints[].distinctAttribute",
            *(f"spec.{request}.capacity" for request in _REQUESTS),
            f"{_RESULT}.shareID", f"{_RESULT}.consumedCapacity", "status.devices[].shareID",
        ),
        _TEMPLATES: (
            "spec.spec.devices.constraints[].distinctAttribute",
            *(f"spec.spec.{request}.capacity" for request in _REQUESTS),
        ),
    },
    "DRADerivedAttributes": {
        _CLAIMS: tuple(f"spec.{request}.derivedAttributes" for request in _REQUESTS),
        _TEMPLATES: tuple(f"spec.spec.{request}.derivedAttributes" for request in _REQUESTS),
    },
    "DRADeviceBindingConditions": {
        _SLICES: (
            f"{_DEVICE}.bindingConditions", f"{_DEVICE}.bindingFailureConditions",
            f"{_DEVICE}.bindsToNode",
        ),
        _CLAIMS: (f"{_RESULT}.bindingConditions", f"{_RESULT}.bindingFailureConditions"),
    },
    "CRDObservedGenerationTracking": {
        "customresourcedefinitions.apiextensions.k8s.io": (
            "status.observedGeneration", "status.conditions[].observedGeneration",
        ),
    },
    "DRADeviceCompatibilityGroups": {
        _SLICES: (f"{_DEVICE}.consumesCounters[].compatibilityGroups",),
    },
    "DRADeviceTaints": {
        _SLICES: (f"{_DEVICE}.taints",),
        _CLAIMS: tuple(f"spec.{request}.tolerations" for request in _REQUESTS),
        _TEMPLATES: tuple(f"spec.spec.{request}.tolerations" for request in _REQUESTS),
    },
    "DRAExtendedResource": {
        _CLASSES: ("spec.extendedResourceName",),
        "pods": ("status.extendedResourceClaimStatus",),
    },
    "DRAListTypeAttributes": {
        _SLICES: tuple(
            f"{_DEVICE}.attributes{{}}.{kind}" for kind in ("bools", "ints", "strings", "versions")
        ),
    },
    "DRANodeAllocatableResources": {
        _SLICES: (f"{_DEVICE}.nodeAllocatableResources",),
        "pods": ("status.nodeAllocatableResourceClaimStatuses",),
    },
    "DRAOptionalNodeOperations": {
        _SLICES: ("spec.skipNodeOperations",),
        _CLAIMS: (f"{_RESULT}.skipNodeOperations",),
    },
    "DRAPartitionableDevices": {
        _SLICES: (
            "spec.sharedCounters", "spec.perDeviceNodeSelection", f"{_DEVICE}.consumesCounters",
            f"{_DEVICE}.nodeName", f"{_DEVICE}.nodeSelector", f"{_DEVICE}.allNodes",
        ),
    },
    "DRAPartitionableDevicesType": {_SLICES: ("spec.partitionTypeAttribute",)},
    "DRAPrioritizedList": {
        _CLAIMS: ("spec.devices.requests[].firstAvailable",),
        _TEMPLATES: ("spec.spec.devices.requests[].firstAvailable",),
    },
    "DeploymentReplicaSetTerminatingReplicas": {
        "deployments.apps": ("status.terminatingReplicas",),
        "replicasets.apps": ("status.terminatingReplicas",),
    },
    "HPAConfigurableTolerance": {
        "horizontalpodautoscalers.autoscaling": (
            "spec.behavior.scaleUp.tolerance", "spec.behavior.scaleDown.tolerance",
        ),
    },
    "ImageVolumeWithDigest": {
        "pods": tuple(f"{status}.volumeMounts[].volumeStatus" for status in _STATUSES),
    },
    "InPlacePodLevelResourcesVerticalScaling": {
        "pods": ("status.resources", "status.allocatedResources"),
    },
    "InPlacePodVerticalScalingSchedulerPreemption": {"nodes": ("spec.podPreemptionPolicy",)},
    "KubeletInUserNamespace": {"nodes": ("status.nodeInfo.runningInUserNamespace",)},
    "MaxUnavailableStatefulSet": {
        "statefulsets.apps": ("spec.updateStrategy.rollingUpdate.maxUnavailable",),
    },
    "MutableCSINodeAllocatableCount": {
        _DRIVERS: ("spec.nodeAllocatableUpdatePeriodSeconds",),
        "volumeattachments.storage.k8s.io": (
            "status.attachError.errorCode", "status.detachError.errorCode",
        ),
    },
    "NodeDeclaredFeatures": {"nodes": ("status.declaredFeatures",)},
    "ResourceHealthStatus": {
        "pods": tuple(f"{status}.allocatedResourcesStatus" for status in _STATUSES),
    },
    "ResourceHealthStatusMessage": {
        "pods": tuple(
            f"{status}.allocatedResourcesStatus[].resources[].message" for status in _STATUSES
        ),
    },
    "VolumeLimitScaling": {_DRIVERS: ("spec.preventPodSchedulingIfMissing",)},
    "WorkloadWithJob": {
        "jobs.batch": ("spec.scheduling",),
        "cronjobs.batch": ("spec.jobTemplate.spec.scheduling",),
    },
}  # fmt: skip
