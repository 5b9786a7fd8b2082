"""A KubeletConfiguration (kubelet.config.k8s.io/v1beta1): what of it this node heeds. Pure.

Job: the written configuration over the settings that the command made → other settings.
Invariant: a value that cannot be had here is refused by name, never left out in silence
    (configuration_fields.py has them all).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sampan.api import features
from sampan.api.configuration import BadConfiguration, ConfigReader
from sampan.api.objects import Obj
from sampan.api.quantity import QuantityError, value_of
from sampan.api.rules.durations import parse_seconds
from sampan.kubelet.configuration_fields import HEEDED, settled, shown_configuration
from sampan.kubelet.eviction import eviction_rules
from sampan.kubelet.eviction.eviction_rules import EvictionSettings, Threshold
from sampan.kubelet.node.shutdown_steps import ShutdownStep, steps_of
from sampan.kubelet.resource_managers.manager_configuration import (
    FIELDS as MANAGER_FIELDS,
)
from sampan.kubelet.resource_managers.manager_configuration import (
    GATES,
    with_managers,
)
from sampan.kubelet.settings import KubeletSettings, Reserved

_USUAL_PERIOD_SECONDS = 0.1
API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"


def with_configuration(settings: KubeletSettings, written: object) -> KubeletSettings:
    """Raises BadConfiguration with everything that is wrong."""
    document = ConfigReader().document(written, KIND, (API_VERSION,))
    given = {name: value for name, value in document.items() if name not in ("apiVersion", "kind")}
    fields, problems = settled(given, _OTHERS)
    try:
        changes = {_FIELDS[name][0]: _read(name, fields, _FIELDS[name][1])
                   for name in fields if name in _FIELDS}  # fmt: skip
        images = {_IMAGES[name][0]: _read(name, fields, _IMAGES[name][1])
                  for name in fields if name in _IMAGES}  # fmt: skip
        evicting = _evicting(settings.eviction, fields)
        reserved = _reservation(settings.reserved, fields)
        shutdown = _shutdown(settings.shutdown, fields)
        managers = with_managers(settings.managers, fields, _gates(fields))
        if managers.reserved_cpus:  # as upstream: whatever kubeReserved and systemReserved say
            reserved = replace(reserved, cpu_milli=1000 * len(managers.reserved_cpus))
        changes |= _memory(settings, fields)
        changes |= _pulls(fields) | _reports(fields) | _health(settings, fields)
    except BadConfiguration as fault:
        raise BadConfiguration([*problems, *fault.problems]) from fault
    if changes.get("system_log_queries") and not changes.get("system_logs", True):
        problems.append("enableSystemLogHandler is required for enableSystemLogQuery")
    if problems:
        raise BadConfiguration(problems)
    garbage = replace(settings.image_garbage, **images)
    made = replace(
        settings, **changes, eviction=evicting, image_garbage=garbage, reserved=reserved,
        shutdown=shutdown, managers=managers,
    )  # fmt: skip
    return replace(made, shown=shown_configuration(given, own_values(made)))


def heeded_fields() -> frozenset[str]:
    """The fields that have an effect."""
    return frozenset({*HEEDED, *_OTHERS})


def own_values(settings: KubeletSettings) -> Obj:
    """What this node has, under the names of the configuration; for /configz."""
    hard = [item for item in settings.eviction.thresholds if not item.grace_seconds]
    return {
        "clusterDNS": list(settings.cluster_dns),
        "clusterDomain": settings.cluster_domain,
        "containerLogMaxFiles": settings.container_log_max_files,
        "evictionHard": {
            item.signal: f"{item.percent:g}%" if item.percent else str(item.amount) for item in hard
        },
        "failCgroupV1": False,
        "failSwapOn": settings.fail_swap_on,
        "healthzPort": settings.healthz[1],
        "imageGCHighThresholdPercent": settings.image_garbage.high_percent,
        "imageGCLowThresholdPercent": settings.image_garbage.low_percent,
        "maxPods": settings.max_pods,
        "podLogsDir": settings.log_dir,
        "podPidsLimit": settings.pod_pids_limit,
        "port": settings.port,
        "staticPodPath": settings.manifests,
        "staticPodURL": settings.manifest_url,
    }


def _read(name: str, fields: Obj, convert: Callable[[Any], Any]) -> Any:
    try:
        return convert(fields[name])
    except (ValueError, TypeError, QuantityError) as fault:
        raise BadConfiguration([f"{name}: {fault}"]) from fault


def _whole(written: object) -> int:
    if isinstance(written, bool) or not isinstance(written, int):
        raise ValueError(f"{written!r} is no whole number")
    return written


def _positive(written: object) -> int:
    if _whole(written) < 1:
        raise ValueError(f"{written} is less than 1")
    return _whole(written)


def _enforcement(written: Any) -> tuple[str, ...]:
    """As limits of the pods' cgroup, or not at all; upstream's other two need slices of others."""
    asked = tuple(item for item in written if item != "none")
    for item in asked:
        if item != "pods":
            raise ValueError(f"{item!r} cannot be enforced here, only pods")
    return asked


def _swap_behavior(written: Any) -> bool:
    """Is it LimitedSwap?"""
    behavior = (written or {}).get("swapBehavior") or ""
    if behavior not in ("", "LimitedSwap", "NoSwap"):
        raise ValueError(
            f'invalid configuration: memorySwap.swapBehavior "{behavior}" must be one of: "", '
            '"LimitedSwap" or "NoSwap"'
        )
    return bool(behavior == "LimitedSwap")


def _sysctls(written: Any) -> tuple[str, ...]:
    """As upstream: only what belongs to a pod's own namespaces can be allowed."""
    for item in written:
        name = str(item).replace("/", ".")
        if not name.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "net.")):
            raise ValueError(f"the sysctls {item!r} are not known to be namespaced")
    return tuple(written)


def _reservation(settings: Reserved, fields: Obj) -> Reserved:
    """Both together; where neither is given, what the command says."""
    given: list[Obj] = [fields.get(name) or {} for name in _RESERVED if name in fields]
    for item in given:
        unknown = [name for name in item if name not in ("cpu", "memory", "ephemeral-storage")]
        if unknown:
            raise BadConfiguration([f"{', '.join(unknown)} cannot be reserved"])
    if not given:
        return settings
    return Reserved(
        cpu_milli=sum(_read("cpu", item, lambda text: value_of(text).milli())
                      for item in given if "cpu" in item),
        memory_bytes=sum(_read("memory", item, _bytes) for item in given if "memory" in item),
        ephemeral_bytes=sum(_read("ephemeral-storage", item, _bytes)
                            for item in given if "ephemeral-storage" in item),
    )  # fmt: skip


def _shutdown(settings: tuple[ShutdownStep, ...], fields: Obj) -> tuple[ShutdownStep, ...]:
    """Two periods, or a list by priority; not both."""
    by_priority = fields.get(_SHUTDOWN[2]) or []
    total, critical = (
        _read(name, fields, parse_seconds) if name in fields else 0.0 for name in _SHUTDOWN[:2]
    )
    if by_priority and (total or critical):
        raise BadConfiguration([f"{_SHUTDOWN[2]} excludes the other two periods"])
    if critical > total:
        raise BadConfiguration([f"{_SHUTDOWN[1]} is longer than {_SHUTDOWN[0]}"])
    if any(0 < period < 1 for period in (total, critical)):
        raise BadConfiguration([f"{_SHUTDOWN[0]}: periods are zero, or one second at least"])
    if by_priority:
        return tuple(
            ShutdownStep(_read("priority", item, _whole),
                         float(_read("shutdownGracePeriodSeconds", item, _whole)))
            for item in by_priority
        )  # fmt: skip
    return steps_of(total, critical) if _SHUTDOWN[0] in fields else settings


def _gates(fields: Obj) -> dict[str, bool]:
    """Of the feature gates those that another field of this document asks for."""
    found = dict(GATES)
    for name, on in (fields.get("featureGates") or {}).items():
        if name not in GATES:
            raise BadConfiguration([f"featureGates: this node has no gate {name!r}"])
        if not isinstance(on, bool):
            raise BadConfiguration([f"featureGates: {name}: {on!r} is neither true nor false"])
        found[name] = on
    return found


def _bytes(written: Any) -> int:
    return value_of(written).value()


def _pulls(fields: Obj) -> Obj:
    """As upstream: one at a time, unless a number says otherwise."""
    at_once, serial = fields.get("maxParallelImagePulls"), fields.get("serializeImagePulls")
    if at_once is not None:
        if _read("maxParallelImagePulls", fields, _positive) > 1 and serial:
            raise BadConfiguration(
                ["maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls = false"]
            )
        return {"parallel_image_pulls": at_once}
    return {} if serial is None else {"parallel_image_pulls": 1 if serial else _MANY_PULLS}


def _reports(fields: Obj) -> Obj:
    """As upstream: a lease is renewed four times in its life, and a node that is to compute its
    status more seldom reports it no more often."""
    changes: Obj = {}
    if "nodeLeaseDurationSeconds" in fields:
        seconds = _read("nodeLeaseDurationSeconds", fields, _positive)
        changes |= {"lease_seconds": seconds, "heartbeat_seconds": seconds / 4}
    for name in ("nodeStatusUpdateFrequency", "nodeStatusReportFrequency"):
        if name in fields:
            changes["status_report_seconds"] = _read(name, fields, parse_seconds)
    return changes


def _memory(settings: KubeletSettings, fields: Obj) -> Obj:
    single = fields.get("singleProcessOOMKill")
    if single is False and not settings.unified:
        raise BadConfiguration(
            ["singleProcessOOMKill: must not be explicitly set to false when using cgroup v1"]
        )
    return {"oom_group": settings.oom_group if single is None else not single}


def _health(settings: KubeletSettings, fields: Obj) -> Obj:
    address, port = settings.healthz
    address = fields.get("healthzBindAddress", address)
    return {"healthz": (address, fields.get("healthzPort", port))}


def _crash_backoff(written: Obj) -> float:
    longest = written.get("maxContainerRestartPeriod")
    return 300.0 if longest is None else parse_seconds(longest)


def _headers(written: Obj) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, values in written.items() for value in values)


def _log_queries(written: object) -> bool:
    if written and not features.enabled("NodeLogQuery"):
        raise ValueError("NodeLogQuery feature gate is required for enableSystemLogQuery")
    return bool(written)


def _cpu_period(written: Any) -> int:
    """In microseconds."""
    seconds = parse_seconds(written)
    if not features.enabled("CustomCPUCFSQuotaPeriod") and seconds != _USUAL_PERIOD_SECONDS:
        raise ValueError(f"{written} requires feature gate CustomCPUCFSQuotaPeriod")
    if not 0.001 <= seconds <= 1:
        raise ValueError(f"{written} must be between 1ms and 1sec, inclusive")
    return round(seconds * 1_000_000)


def _verification(written: str) -> str:
    known = (
        "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify",
    )  # fmt: skip
    if written not in known:
        raise ValueError(f"{written!r} is none of {', '.join(known)}")
    return written


# Field → the setting, and how its value is read.
_FIELDS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "allowedUnsafeSysctls": ("allowed_unsafe_sysctls", _sysctls),
    "clusterDomain": ("cluster_domain", str),
    "clusterDNS": ("cluster_dns", tuple),
    "containerLogMaxFiles": ("container_log_max_files", _whole),
    "containerLogMaxSize": ("container_log_max_bytes", _bytes),
    "cpuCFSQuota": ("cpu_quota", bool),
    "cpuCFSQuotaPeriod": ("cpu_period", _cpu_period),
    "crashLoopBackOff": ("crash_backoff_seconds", _crash_backoff),
    "enableDebuggingHandlers": ("debugging_handlers", bool),
    "enableSystemLogHandler": ("system_logs", bool),
    "enableSystemLogQuery": ("system_log_queries", _log_queries),
    "enforceNodeAllocatable": ("enforce_allocatable", _enforcement),
    "failSwapOn": ("fail_swap_on", bool),
    "httpCheckFrequency": ("manifest_url_seconds", parse_seconds),
    "imagePullCredentialsVerificationPolicy": ("image_verification", _verification),
    "maxPods": ("max_pods", _whole),
    "memorySwap": ("limited_swap", _swap_behavior),
    "nodeStatusMaxImages": ("images_in_status", _whole),
    "podLogsDir": ("log_dir", str),
    "podPidsLimit": ("pod_pids_limit", _whole),
    "podsPerCore": ("pods_per_core", _whole),
    "preloadedImagesVerificationAllowlist": ("unverified_images", tuple),
    "providerID": ("provider_id", str),
    "registerNode": ("register_node", bool),
    "registerWithTaints": ("taints", tuple),
    "resolvConf": ("resolv_conf", str),
    "seccompDefault": (
        "default_seccomp", lambda on: "RuntimeDefault" if on is True else "Unconfined"
    ),
    "staticPodPath": ("manifests", str),
    "staticPodURL": ("manifest_url", str),
    "staticPodURLHeader": ("manifest_url_headers", _headers),
}  # fmt: skip
_MANY_PULLS = 1000  # serializeImagePulls: false
_OTHERS = frozenset({*MANAGER_FIELDS, "featureGates"})
_RESERVED = ("kubeReserved", "systemReserved")
_SHUTDOWN = (
    "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority",
)  # fmt: skip
_IMAGES: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "imageGCHighThresholdPercent": ("high_percent", _whole),
    "imageGCLowThresholdPercent": ("low_percent", _whole),
    "imageMaximumGCAge": ("max_age_seconds", parse_seconds),
    "imageMinimumGCAge": ("min_age_seconds", parse_seconds),
}
_EVICTION_MAPS = (
    "evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim",
)  # fmt: skip
_EVICTION_TIMES: Mapping[str, tuple[str, Callable[[Any], float]]] = {
    "evictionMaxPodGracePeriod": ("max_pod_grace_seconds", _whole),
    # Ours: upstream looks every ten seconds, which cannot be changed.
    "evictionMonitoringPeriod": ("period_seconds", parse_seconds),
    "evictionPressureTransitionPeriod": ("transition_seconds", parse_seconds),
}


def _evicting(settings: EvictionSettings, fields: Obj) -> EvictionSettings:
    times = {
        _EVICTION_TIMES[name][0]: _read(name, fields, _EVICTION_TIMES[name][1])
        for name in fields
        if name in _EVICTION_TIMES
    }
    hard, soft, grace, reclaim = (fields.get(name) or {} for name in _EVICTION_MAPS)
    thresholds = [
        *(_threshold(signal, text, reclaim) for signal, text in hard.items()),
        *(replace(_threshold(signal, text, reclaim), grace_seconds=_grace(signal, grace))
          for signal, text in soft.items()),
    ]  # fmt: skip
    if "evictionHard" not in fields:  # as upstream: what is given replaces the defaults
        thresholds = [*settings.thresholds, *thresholds]
    elif fields.get("mergeDefaultEvictionSettings"):
        others = [item for item in settings.thresholds if item.signal not in hard]
        thresholds = [*others, *thresholds]
    return replace(settings, thresholds=tuple(thresholds), **times)


def _grace(signal: str, grace: Obj) -> float:
    if signal not in grace:
        raise BadConfiguration([f"evictionSoft: grace period must be specified for {signal}"])
    return _read(signal, grace, parse_seconds) or 1e-9  # a soft one stays soft


def _threshold(signal: str, written: object, reclaim: Obj) -> Threshold:
    if signal not in eviction_rules.CONDITIONS:
        raise BadConfiguration([f"unknown eviction signal {signal}"])
    amount, percent = _read(signal, {signal: written}, _amount)
    more, more_percent = _read(signal, reclaim, _amount) if signal in reclaim else (0, 0.0)
    return Threshold(signal, amount, percent, reclaim=more, reclaim_percent=more_percent)


def _amount(written: object) -> tuple[int, float]:
    text = str(written)
    if not text.endswith("%"):
        return value_of(text).value(), 0.0
    percent = float(text[:-1])
    if not 0 <= percent <= 100:
        raise ValueError(f"{text} is not between 0% and 100%")
    return 0, percent
