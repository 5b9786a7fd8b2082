"""Every field of v1.37 is taken, taken with certain values, or heeded."""

import pytest

from sampan.kubelet.configuration_fields import FREE, HEEDED, ONLY, settled

OTHERS = frozenset({
    # Of the managers of processors, memory and their alignment.
    "cpuManagerPolicy", "cpuManagerPolicyOptions", "memoryManagerPolicy", "reservedMemory",
    "reservedSystemCPUs", "topologyManagerPolicy", "topologyManagerPolicyOptions",
    "topologyManagerScope", "featureGates",
    # Objects with checks of their own.
    "authentication", "authorization", "logging", "userNamespaces",
})  # fmt: skip
V1_37 = (
    "enableServer", "staticPodPath", "podLogsDir", "syncFrequency", "fileCheckFrequency",
    "httpCheckFrequency", "staticPodURL", "staticPodURLHeader", "address", "port", "readOnlyPort",
    "tlsCertFile", "tlsPrivateKeyFile", "tlsCipherSuites", "tlsMinVersion", "rotateCertificates",
    "serverTLSBootstrap", "authentication", "authorization", "registryPullQPS", "registryBurst",
    "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist",
    "eventRecordQPS", "eventBurst", "enableDebuggingHandlers", "enableContentionProfiling",
    "healthzPort", "healthzBindAddress", "oomScoreAdj", "clusterDomain", "clusterDNS",
    "streamingConnectionIdleTimeout", "nodeStatusUpdateFrequency", "nodeStatusReportFrequency",
    "nodeLeaseDurationSeconds", "imageMinimumGCAge", "imageMaximumGCAge",
    "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "volumeStatsAggPeriod",
    "kubeletCgroups", "systemCgroups", "cgroupRoot", "cgroupsPerQOS", "cgroupDriver",
    "cpuManagerPolicy", "singleProcessOOMKill", "cpuManagerPolicyOptions",
    "cpuManagerReconcilePeriod", "memoryManagerPolicy", "topologyManagerPolicy",
    "topologyManagerScope", "topologyManagerPolicyOptions", "qosReserved",
    "runtimeRequestTimeout", "hairpinMode", "maxPods", "podCIDR", "podPidsLimit", "resolvConf",
    "runOnce", "cpuCFSQuota", "cpuCFSQuotaPeriod", "nodeStatusMaxImages", "maxOpenFiles",
    "contentType", "kubeAPIQPS", "kubeAPIBurst", "serializeImagePulls", "maxParallelImagePulls",
    "evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionPressureTransitionPeriod",
    "evictionMaxPodGracePeriod", "evictionMinimumReclaim", "mergeDefaultEvictionSettings",
    "podsPerCore", "enableControllerAttachDetach", "protectKernelDefaults",
    "makeIPTablesUtilChains", "iptablesMasqueradeBit", "iptablesDropBit", "featureGates",
    "failSwapOn", "memorySwap", "containerLogMaxSize", "containerLogMaxFiles",
    "containerLogMaxWorkers", "containerLogMonitorInterval",
    "configMapAndSecretChangeDetectionStrategy", "systemReserved", "kubeReserved",
    "reservedSystemCPUs", "showHiddenMetricsForVersion", "systemReservedCgroup",
    "kubeReservedCgroup", "enforceNodeAllocatable", "allowedUnsafeSysctls", "volumePluginDir",
    "providerID", "kernelMemcgNotification", "logging", "enableSystemLogHandler",
    "enableSystemLogQuery", "shutdownGracePeriod", "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority", "crashLoopBackOff", "reservedMemory",
    "enableProfilingHandler", "enableDebugFlagsHandler", "seccompDefault",
    "memoryThrottlingFactor", "registerWithTaints", "registerNode", "tracing",
    "localStorageCapacityIsolation", "containerRuntimeEndpoint", "imageServiceEndpoint",
    "failCgroupV1", "userNamespaces",
    # Since v1.36 and v1.37.
    "defaultPodSysctls", "memoryReservationPolicy", "tlsCurvePreferences",
)  # fmt: skip


def test_every_field_has_its_place_and_only_one():
    tables = [set(HEEDED), set(ONLY), set(FREE), set(OTHERS)]
    for name in V1_37:
        assert sum(name in table for table in tables) == 1, name
    assert {*HEEDED, *ONLY, *FREE} - set(V1_37) == {"evictionMonitoringPeriod"}


def problems(**fields):
    return settled(fields, frozenset())[1]


@pytest.mark.parametrize(
    ("name", "taken", "refused", "why"),
    [
        (
            "cgroupDriver",
            "systemd",
            "mine",
            "'mine' is not supported, only 'cgroupfs' or 'systemd'",
        ),
        ("readOnlyPort", 0, 10255, "10255 is not supported, only 0"),
        ("systemReservedCgroup", "", "/system", "'/system' is not supported, only none"),
        ("enableServer", True, False, "False is not supported, only True"),
        ("registryPullQPS", 0, "5", "'5' is no whole number"),
        ("oomScoreAdj", -1, True, "True is no whole number"),
        ("memoryThrottlingFactor", 1, "x", "'x' is no number"),
        ("syncFrequency", "3s", "often", 'time: invalid duration "often"'),
        ("rotateCertificates", True, 1, "1 is neither true nor false"),
        ("clusterDNS", [], "10.0.0.10", "'10.0.0.10' is no list"),
        ("evictionHard", {}, [], "[] is no object"),
        ("healthzPort", 0, 0.5, "0.5 is no whole number"),
        ("hairpinMode", "none", 1, "1 is no text"),
    ],
)
def test_values_are_of_the_right_kind_and_can_be_had(name, taken, refused, why):
    assert problems(**{name: taken}) == []
    assert problems(**{name: None}) == []
    assert problems(**{name: refused}) == [f"{name}: {why}"]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (
            "authentication",
            {"anonymous": {"enabled": True}},
            "authentication.anonymous.enabled: nobody without a name is let in here",
        ),
        (
            "authentication",
            {"webhook": {"enabled": False}},
            "authentication.webhook.enabled: tokens are always shown to the API server",
        ),
        ("authentication", {"oidc": {}}, "authentication.oidc: unknown field"),
        ("authentication", [1], "authentication: [1] is no object"),
        (
            "authorization",
            {"mode": "AlwaysAllow"},
            "authorization.mode: 'AlwaysAllow' is not supported, only 'Webhook'",
        ),
        ("logging", {"format": "json"}, "logging.format: 'json' is not supported, only 'text'"),
        (
            "memorySwap",
            {"swapBehaviour": "NoSwap"},
            "memorySwap.swapBehaviour: unknown field",
        ),
        (
            "crashLoopBackOff",
            {"maxContainerRestartPeriod": "0.5s"},
            "crashLoopBackOff.maxContainerRestartPeriod: not between 1s and 300s",
        ),
        ("userNamespaces", {"idsPerPod": 1}, "userNamespaces.idsPerPod: only 65536 is supported"),
    ],
)
def test_objects_are_looked_into(name, value, why):
    assert problems(**{name: {}}) == []
    assert problems(**{name: value}) == [why]


def test_zero_is_the_default_where_go_cannot_tell_it_from_nothing():
    written = {
        "maxPods": 0, "imageMinimumGCAge": "0s", "clusterDomain": "", "podPidsLimit": 0,
        "imageGCHighThresholdPercent": 0, "registerNode": False, "evictionHard": {},
    }  # fmt: skip
    assert settled(written, frozenset())[0] == {
        "podPidsLimit": 0, "imageGCHighThresholdPercent": 0, "registerNode": False,
        "evictionHard": {},
    }  # fmt: skip
