"""The fields of a KubeletConfiguration: types, defaults, and which values are taken. Pure.

Job: of what is written, what is to be heeded; an error for what cannot be had here; what /configz
    shows. Which setting a heeded field changes is configuration.py's to know.
Invariant: every field of v1.37 is in one of three tables: heeded, of certain values only, or of any
    value because nothing here depends on it.
Invariant: as in Go, a field that is no pointer there and has its zero value was not written.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sampan.api.objects import Obj
from sampan.api.rules.durations import parse_seconds
from sampan.core.durations import DurationError


class Duration(str):
    """A default that is a span of time."""

    __slots__ = ()


# Upstream's defaults. A zero duration, number or text of these stands for the default.
HEEDED: Mapping[str, Any] = {
    "allowedUnsafeSysctls": [],
    "clusterDNS": [],
    "clusterDomain": "",
    "containerLogMaxFiles": 5,
    "containerLogMaxSize": "10Mi",
    "cpuCFSQuota": True,
    "cpuCFSQuotaPeriod": Duration("100ms"),
    "crashLoopBackOff": {"maxContainerRestartPeriod": "5m0s"},
    "enableDebuggingHandlers": True,
    "enableSystemLogHandler": True,
    "enableSystemLogQuery": False,
    "enforceNodeAllocatable": ["pods"],
    "evictionHard": {},
    "evictionMaxPodGracePeriod": 0,
    "evictionMinimumReclaim": {},
    "evictionMonitoringPeriod": Duration("10s"),  # sampan's own
    "evictionPressureTransitionPeriod": Duration("5m0s"),
    "evictionSoft": {},
    "evictionSoftGracePeriod": {},
    "failSwapOn": True,
    "healthzBindAddress": "127.0.0.1",
    "healthzPort": 10248,
    "httpCheckFrequency": Duration("20s"),
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "imageMaximumGCAge": Duration("0s"),
    "imageMinimumGCAge": Duration("2m0s"),
    "imagePullCredentialsVerificationPolicy": "NeverVerifyPreloadedImages",
    "kubeReserved": {},
    "maxParallelImagePulls": 0,
    "memorySwap": {},
    "maxPods": 110,
    "mergeDefaultEvictionSettings": False,
    "nodeLeaseDurationSeconds": 40,
    "nodeStatusMaxImages": 50,
    "nodeStatusReportFrequency": Duration("5m0s"),
    "nodeStatusUpdateFrequency": Duration("10s"),
    "podLogsDir": "/var/log/pods",
    "podPidsLimit": -1,
    "podsPerCore": 0,
    "port": 10250,
    "preloadedImagesVerificationAllowlist": [],
    "providerID": "",
    "registerNode": True,
    "registerWithTaints": [],
    "resolvConf": "/etc/resolv.conf",
    "seccompDefault": False,
    "serializeImagePulls": True,
    "shutdownGracePeriod": Duration("0s"),
    "shutdownGracePeriodByPodPriority": [],
    "shutdownGracePeriodCriticalPods": Duration("0s"),
    "singleProcessOOMKill": False,
    "staticPodPath": "",
    "staticPodURL": "",
    "staticPodURLHeader": {},
    "systemReserved": {},
    "tlsCertFile": "",
    "tlsPrivateKeyFile": "",
}
# The first is upstream's default; the others make no difference here.
ONLY: Mapping[str, tuple[Any, ...]] = {
    "address": ("0.0.0.0", "::"),
    "cgroupDriver": ("cgroupfs", "systemd"),  # as the runtime says
    "cgroupRoot": ("", "/"),
    "cgroupsPerQOS": (True,),
    "containerRuntimeEndpoint": ("",),  # --cri-socket
    "defaultPodSysctls": ({},),
    "enableServer": (True,),
    "imageServiceEndpoint": ("",),
    "kubeReservedCgroup": ("",),
    "kubeletCgroups": ("",),
    "localStorageCapacityIsolation": (True,),
    "memoryReservationPolicy": ("None",),
    "podCIDR": ("",),
    "protectKernelDefaults": (False,),
    "qosReserved": ({},),
    "readOnlyPort": (0,),
    "runOnce": (False,),
    "systemCgroups": ("",),
    "systemReservedCgroup": ("",),
    "tlsCipherSuites": ([],),
    "tlsCurvePreferences": ([],),
    "tlsMinVersion": ("", "VersionTLS12"),
    "tracing": ({},),
}
# Nothing here depends on them: how often something is polled that is watched here, how much of a
# client's own limits, what iptables or a cloud would be told.
FREE: Mapping[str, Any] = {
    "configMapAndSecretChangeDetectionStrategy": "Watch",
    "containerLogMaxWorkers": 1,
    "containerLogMonitorInterval": Duration("10s"),
    "contentType": "application/vnd.kubernetes.protobuf",
    "cpuManagerReconcilePeriod": Duration("10s"),
    "enableContentionProfiling": False,
    "enableControllerAttachDetach": True,
    "enableDebugFlagsHandler": True,
    "enableProfilingHandler": True,
    "eventBurst": 100,
    "eventRecordQPS": 50,
    "failCgroupV1": True,
    "fileCheckFrequency": Duration("20s"),
    "hairpinMode": "promiscuous-bridge",
    "iptablesDropBit": 15,
    "iptablesMasqueradeBit": 14,
    "kernelMemcgNotification": False,
    "kubeAPIBurst": 100,
    "kubeAPIQPS": 50,
    "makeIPTablesUtilChains": True,
    "maxOpenFiles": 1_000_000,
    "memoryThrottlingFactor": 0.9,
    "oomScoreAdj": -999,
    "registryBurst": 10,
    "registryPullQPS": 5,
    "rotateCertificates": False,
    "runtimeRequestTimeout": Duration("2m0s"),
    "serverTLSBootstrap": False,
    "showHiddenMetricsForVersion": "",
    "streamingConnectionIdleTimeout": Duration("4h0m0s"),
    "syncFrequency": Duration("1m0s"),
    "volumePluginDir": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    "volumeStatsAggPeriod": Duration("1m0s"),
}
# Pointers in Go: what is written is meant, zero too.
_POINTERS = frozenset({
    "containerLogMaxFiles", "containerLogMaxWorkers", "containerLogMonitorInterval", "cpuCFSQuota",
    "cpuCFSQuotaPeriod", "eventRecordQPS", "failCgroupV1", "healthzPort",
    "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "iptablesDropBit",
    "iptablesMasqueradeBit", "kubeAPIQPS", "maxParallelImagePulls", "memoryThrottlingFactor",
    "nodeStatusMaxImages", "oomScoreAdj", "podPidsLimit", "registryPullQPS", "resolvConf",
})  # fmt: skip


def settled(fields: Obj, known: frozenset[str]) -> tuple[Obj, list[str]]:
    """What is written and to be heeded, and what is wrong. `known`: fields that others read, as
    they are."""
    problems: list[str] = []
    heeded: Obj = {}
    for name, value in fields.items():
        if name in known and name not in HEEDED:
            heeded |= {} if _is_unset(name, value) else {name: value}
        elif name in _OBJECTS:
            found = value or {}
            is_object = isinstance(found, dict)
            problems += _OBJECTS[name](found) if is_object else [f"{name}: {value!r} is no object"]
            if name in HEEDED:
                heeded[name] = found
        elif name not in HEEDED and name not in ONLY and name not in FREE:
            problems.append(f"{name}: this node has no such setting")
        elif value is not None and not _is_unset(name, value):
            wrong = _problems_of(name, value)
            problems += wrong
            if name in HEEDED and not wrong:
                heeded[name] = value
    return heeded, problems


def shown_configuration(fields: Obj, own: Obj) -> Obj:
    """What /configz shows: upstream's defaults, what is written, and what this node has of its own
    where nothing is."""
    defaults = {
        **{name: value for name, value in HEEDED.items() if name != "evictionMonitoringPeriod"},
        **{name: values[0] for name, values in ONLY.items()},
        **FREE,
        **_SHOWN,
    }
    written = {
        name: value
        for name, value in fields.items()
        if value is not None and not (name in defaults and _is_unset(name, value))
    }
    shown = {**defaults, **own, **written}
    return {name: shown[name] for name in sorted(shown) if shown[name] not in ("", [], {}, None)}


def _default(name: str) -> Any:
    if name in ONLY:
        return ONLY[name][0]
    return HEEDED[name] if name in HEEDED else FREE.get(name)


def _is_unset(name: str, value: Any) -> bool:
    """The zero value of a field that is no pointer."""
    default = _default(name)
    if name in _POINTERS or isinstance(default, bool | list | dict) or default is None:
        return False
    if isinstance(default, Duration):
        try:
            return parse_seconds(value) == 0
        except DurationError:
            return False
    return not isinstance(value, bool) and value in ("", 0)


def _problems_of(name: str, value: Any) -> list[str]:
    wrong = _wrong_type(_default(name), value)
    if wrong:
        return [f"{name}: {wrong}"]
    if name in ONLY and not any(_equal(value, only) for only in ONLY[name]):
        values = " or ".join(repr(only) for only in ONLY[name] if only != "") or "none"
        return [f"{name}: {value!r} is not supported, only {values}"]
    return []


def _equal(value: Any, only: Any) -> bool:
    if isinstance(only, Duration):
        return parse_seconds(value) == parse_seconds(str(only))
    return bool(value == only)


def _wrong_type(default: Any, value: Any) -> str:
    if isinstance(default, Duration):
        try:
            parse_seconds(value)
        except DurationError as error:
            return str(error)
        return ""
    for kinds, said in (
        (bool, "neither true nor false"),
        (int, "no whole number"),
        (float, "no number"),
        (str, "no text"),
        (list, "no list"),
        (dict, "no object"),
    ):
        if isinstance(default, kinds):
            fits = isinstance(value, (int, float) if kinds is float else kinds)
            is_other = kinds is not bool and isinstance(value, bool)
            return "" if fits and not is_other else f"{value!r} is {said}"
    return ""


def _authentication(given: Obj) -> list[str]:
    problems = _unknown("authentication", given, ("anonymous", "webhook", "x509"))
    if (given.get("anonymous") or {}).get("enabled"):
        problems.append("authentication.anonymous.enabled: nobody without a name is let in here")
    if (given.get("webhook") or {}).get("enabled") is False:
        problems.append("authentication.webhook.enabled: tokens are always shown to the API server")
    return problems


def _authorization(given: Obj) -> list[str]:
    problems = _unknown("authorization", given, ("mode", "webhook"))
    mode = given.get("mode") or "Webhook"
    if mode != "Webhook":
        problems.append(f"authorization.mode: {mode!r} is not supported, only 'Webhook'")
    return problems


def _logging(given: Obj) -> list[str]:
    names = ("format", "flushFrequency", "verbosity", "vmodule", "options")
    problems = _unknown("logging", given, names)
    kind = given.get("format") or "text"
    if kind != "text":
        problems.append(f"logging.format: {kind!r} is not supported, only 'text'")
    return problems


def _memory_swap(given: Obj) -> list[str]:
    return _unknown("memorySwap", given, ("swapBehavior",))


def _crash_backoff(given: Obj) -> list[str]:
    problems = _unknown("crashLoopBackOff", given, ("maxContainerRestartPeriod",))
    longest = given.get("maxContainerRestartPeriod")
    try:
        if longest is not None and not 1 <= parse_seconds(longest) <= 300:
            problems.append("crashLoopBackOff.maxContainerRestartPeriod: not between 1s and 300s")
    except DurationError as error:
        problems.append(f"crashLoopBackOff.maxContainerRestartPeriod: {error}")
    return problems


def _user_namespaces(given: Obj) -> list[str]:
    problems = _unknown("userNamespaces", given, ("idsPerPod",))
    if given.get("idsPerPod", 65_536) != 65_536:
        problems.append("userNamespaces.idsPerPod: only 65536 is supported")
    return problems


def _unknown(path: str, given: Obj, names: tuple[str, ...]) -> list[str]:
    return [f"{path}.{name}: unknown field" for name in given if name not in names]


_OBJECTS: Mapping[str, Callable[[Obj], list[str]]] = {
    "authentication": _authentication,
    "authorization": _authorization,
    "crashLoopBackOff": _crash_backoff,
    "logging": _logging,
    "memorySwap": _memory_swap,
    "userNamespaces": _user_namespaces,
}
_SHOWN: Obj = {
    "authentication": {
        "x509": {},
        "webhook": {"enabled": True, "cacheTTL": "2m0s"},
        "anonymous": {"enabled": False},
    },
    "authorization": {
        "mode": "Webhook",
        "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
    },
    "logging": {"format": "text", "flushFrequency": "5s", "verbosity": 0},
}
