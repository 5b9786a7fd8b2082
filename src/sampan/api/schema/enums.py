"""Fields of a closed set of values, and the sets (facts of v1.35's types).

Job: data, and the lookup from a definition to its fields' values. Pure.
"""

_CORE = "io.k8s.api.core.v1"
_PULL = "Always IfNotPresent Never"
_PROTOCOL = "SCTP TCP UDP"
_PROFILE = "Localhost RuntimeDefault Unconfined"
_OPERATORS = "DoesNotExist Exists In NotIn"
_NODE_OPERATORS = "DoesNotExist Exists Gt In Lt NotIn"
_POLICY = {"failurePolicy": "Fail Ignore", "matchPolicy": "Equivalent Exact"}
_HOOK = {**_POLICY, "sideEffects": "None NoneOnDryRun Some Unknown"}
_CONTAINER = {
    "imagePullPolicy": _PULL,
    "terminationMessagePolicy": "FallbackToLogsOnError File",
}

_ENUMS: dict[str, dict[str, dict[str, str]]] = {
    _CORE: {
        "AppArmorProfile": {"type": _PROFILE},
        "AzureDiskVolumeSource": {
            "cachingMode": "None ReadOnly ReadWrite",
            "kind": "Dedicated Managed Shared",
        },
        "Container": _CONTAINER,
        "ContainerPort": {"protocol": _PROTOCOL},
        "ContainerRestartRule": {"action": "Restart RestartAllContainers"},
        "ContainerRestartRuleOnExitCodes": {"operator": "In NotIn"},
        "EndpointPort": {"protocol": _PROTOCOL},
        "EphemeralContainer": _CONTAINER,
        "HTTPGetAction": {"scheme": "HTTP HTTPS"},
        "ImageVolumeSource": {"pullPolicy": _PULL},
        "NamespaceStatus": {"phase": "Active Terminating"},
        "NodeSelectorRequirement": {"operator": _NODE_OPERATORS},
        "NodeStatus": {"phase": "Pending Running Terminated"},
        "PersistentVolumeClaimSpec": {"volumeMode": "Block Filesystem"},
        "PersistentVolumeClaimStatus": {"phase": "Bound Lost Pending"},
        "PersistentVolumeSpec": {
            "persistentVolumeReclaimPolicy": "Delete Recycle Retain",
            "volumeMode": "Block Filesystem",
        },
        "PersistentVolumeStatus": {"phase": "Available Bound Failed Pending Released"},
        "PodSecurityContext": {
            "fsGroupChangePolicy": "Always OnRootMismatch",
            "supplementalGroupsPolicy": "Merge Strict",
        },
        "PodSpec": {
            "dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
            "preemptionPolicy": "Never PreemptLowerPriority",
            "restartPolicy": "Always Never OnFailure",
        },
        "PodStatus": {
            "phase": "Failed Pending Running Succeeded Unknown",
            "qosClass": "BestEffort Burstable Guaranteed",
        },
        "ScopedResourceSelectorRequirement": {
            "operator": _OPERATORS,
            "scopeName": "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating "
            "PriorityClass Terminating VolumeAttributesClass",
        },
        "SeccompProfile": {"type": _PROFILE},
        "SecurityContext": {"procMount": "Default Unmasked"},
        "ServicePort": {"protocol": _PROTOCOL},
        "ServiceSpec": {
            "externalTrafficPolicy": "Cluster Local",
            "internalTrafficPolicy": "Cluster Local",
            "ipFamilyPolicy": "PreferDualStack RequireDualStack SingleStack",
            "sessionAffinity": "ClientIP None",
            "type": "ClusterIP ExternalName LoadBalancer NodePort",
        },
        "Taint": {"effect": "NoExecute NoSchedule PreferNoSchedule"},
        "Toleration": {
            "effect": "NoExecute NoSchedule PreferNoSchedule",
            "operator": "Equal Exists Gt Lt",
        },
        "TopologySpreadConstraint": {
            "nodeAffinityPolicy": "Honor Ignore",
            "nodeTaintsPolicy": "Honor Ignore",
            "whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
        },
        "VolumeMount": {"mountPropagation": "Bidirectional HostToContainer None"},
    },
    "io.k8s.api.admissionregistration.v1": {
        "MatchResources": {"matchPolicy": "Equivalent Exact"},
        "MutatingWebhook": {**_HOOK, "reinvocationPolicy": "IfNeeded Never"},
        "NamedRuleWithOperations": {"scope": "* Cluster Namespaced"},
        "RuleWithOperations": {"scope": "* Cluster Namespaced"},
        "ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail Ignore"},
        "ValidatingWebhook": _HOOK,
    },
    "io.k8s.api.apps.v1": {
        "DaemonSetUpdateStrategy": {"type": "OnDelete RollingUpdate"},
        "DeploymentStrategy": {"type": "Recreate RollingUpdate"},
        "StatefulSetSpec": {"podManagementPolicy": "OrderedReady Parallel"},
        "StatefulSetUpdateStrategy": {"type": "OnDelete RollingUpdate"},
    },
    "io.k8s.api.batch.v1": {
        "CronJobSpec": {"concurrencyPolicy": "Allow Forbid Replace"},
        "JobSpec": {
            "completionMode": "Indexed NonIndexed",
            "podReplacementPolicy": "Failed TerminatingOrFailed",
        },
        "PodFailurePolicyOnExitCodesRequirement": {"operator": "In NotIn"},
        "PodFailurePolicyRule": {"action": "Count FailIndex FailJob Ignore"},
    },
    "io.k8s.api.discovery.v1": {"EndpointSlice": {"addressType": "FQDN IPv4 IPv6"}},
    "io.k8s.api.networking.v1": {
        "HTTPIngressPath": {"pathType": "Exact ImplementationSpecific Prefix"},
        "NetworkPolicyPort": {"protocol": _PROTOCOL},
    },
    "io.k8s.api.policy.v1": {
        "PodDisruptionBudgetSpec": {"unhealthyPodEvictionPolicy": "AlwaysAllow IfHealthyBudget"},
    },
    "io.k8s.api.storage.v1": {
        "StorageClass": {
            "reclaimPolicy": "Delete Recycle Retain",
            "volumeBindingMode": "Immediate WaitForFirstConsumer",
        },
    },
}


def enums_of(name: str) -> dict[str, list[str]]:
    """Of a definition: field → the values that it may have."""
    package, _, kind = name.rpartition(".")
    found = _ENUMS.get(package, {}).get(kind, {})
    return {field: values.split() for field, values in found.items()}
