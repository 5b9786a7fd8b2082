"""A KubeletConfiguration: what is heeded, and what is refused [N17, N18, X6]."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sampan.api import features
from sampan.api.configuration import BadConfiguration
from sampan.api.features import Release
from sampan.kubelet.configuration import API_VERSION, KIND, heeded_fields, with_configuration
from sampan.kubelet.eviction.eviction_rules import MEMORY, NODEFS, Threshold
from sampan.kubelet.settings import KubeletSettings, Reserved

BEFORE = KubeletSettings("n")


def read(**fields):
    """The settings, but for what is only shown."""
    made = with_configuration(BEFORE, {"apiVersion": API_VERSION, "kind": KIND, **fields})
    return replace(made, shown={})


def refused(**fields):
    with pytest.raises(BadConfiguration) as caught:
        read(**fields)
    return caught.value.problems


def test_an_empty_configuration_changes_nothing():
    assert read() == BEFORE


def test_thresholds_are_read_with_their_grace_and_what_must_be_reclaimed():
    eviction = read(
        evictionHard={MEMORY: "100Mi", NODEFS: "10%"},
        evictionSoft={MEMORY: "1Gi"},
        evictionSoftGracePeriod={MEMORY: "1m30s"},
        evictionMinimumReclaim={NODEFS: "5%", MEMORY: "1Mi"},
        evictionMaxPodGracePeriod=7,
        evictionPressureTransitionPeriod="2s",
        evictionMonitoringPeriod="500ms",
    ).eviction
    assert eviction.thresholds == (
        Threshold(MEMORY, 100 << 20, reclaim=1 << 20),
        Threshold(NODEFS, percent=10.0, reclaim_percent=5.0),
        Threshold(MEMORY, 1 << 30, grace_seconds=90.0, reclaim=1 << 20),
    )
    assert eviction.max_pod_grace_seconds == 7
    assert (eviction.transition_seconds, eviction.period_seconds) == (2.0, 0.5)


def test_soft_thresholds_alone_leave_the_hard_ones_as_they_are():
    eviction = read(evictionSoft={MEMORY: "1Gi"}, evictionSoftGracePeriod={MEMORY: "1s"}).eviction
    assert eviction.thresholds[: len(BEFORE.eviction.thresholds)] == BEFORE.eviction.thresholds


def test_other_settings_are_taken_over():
    found = read(containerLogMaxSize="1Mi", containerLogMaxFiles=2, seccompDefault=True,
                 imageGCHighThresholdPercent=90, imageMinimumGCAge="1h",
                 clusterDNS=["10.0.0.10"])  # fmt: skip
    assert (found.container_log_max_bytes, found.container_log_max_files) == (1 << 20, 2)
    assert found.default_seccomp == "RuntimeDefault"
    assert found.image_garbage.high_percent == 90
    assert found.image_garbage.min_age_seconds == 3600
    assert found.cluster_dns == ("10.0.0.10",)


def test_what_has_no_effect_is_refused_by_name():
    assert refused(cpuManagerPolicy="tea", nonsense=1) == [
        "nonsense: this node has no such setting",
        'cpuManagerPolicy: unknown policy: "tea"',
    ]
    assert refused(evictionHard={"tea.available": "1"}) == ["unknown eviction signal tea.available"]
    assert refused(evictionSoft={MEMORY: "1Gi"}) == [
        f"evictionSoft: grace period must be specified for {MEMORY}"
    ]
    assert "quantities" in refused(evictionHard={MEMORY: "much"})[0]
    assert refused(evictionHard={MEMORY: "101%"}) == [f"{MEMORY}: 101% is not between 0% and 100%"]
    assert refused(containerLogMaxFiles="5") == ["containerLogMaxFiles: '5' is no whole number"]
    assert refused(imageMinimumGCAge="2 hours") == [
        'imageMinimumGCAge: time: unknown unit " hours" in duration "2 hours"'
    ]
    with pytest.raises(BadConfiguration, match="is no KubeletConfiguration"):
        with_configuration(BEFORE, {"kind": "Pod"})
    with pytest.raises(BadConfiguration, match="expected an object"):
        with_configuration(BEFORE, [])


KUBEADM = """
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""


def test_what_kubeadm_writes_is_taken():
    """[N17] Zero durations stand for the defaults."""
    assert read(**yaml.safe_load(KUBEADM)) == replace(
        BEFORE,
        healthz=("127.0.0.1", 10248),
        cluster_dns=("10.96.0.10",),
        resolv_conf="/run/systemd/resolve/resolv.conf",
        manifests="/etc/kubernetes/manifests",
    )


def test_the_lease_is_renewed_four_times_in_its_life_whatever_else_is_said():
    """[N17]"""
    seldom = read(nodeStatusUpdateFrequency="1m")
    assert (seldom.lease_seconds, seldom.heartbeat_seconds) == (40, 10.0)
    assert seldom.status_report_seconds == 60.0
    assert read(nodeStatusUpdateFrequency="1m", nodeStatusReportFrequency="2m") == replace(
        BEFORE, status_report_seconds=120.0
    )
    longer = read(nodeLeaseDurationSeconds=100)
    assert (longer.lease_seconds, longer.heartbeat_seconds) == (100, 25.0)


def test_pulls_one_at_a_time_or_more():
    assert read(serializeImagePulls=True).parallel_image_pulls == 1
    assert read(serializeImagePulls=False).parallel_image_pulls > 100
    both = {"serializeImagePulls": False, "maxParallelImagePulls": 3}
    assert read(**both).parallel_image_pulls == 3
    assert "cannot be larger than 1" in refused(**both | {"serializeImagePulls": True})[0]


def test_what_is_given_may_be_merged_with_the_defaults():
    given = {"evictionHard": {NODEFS: "1%"}, "mergeDefaultEvictionSettings": True}
    found = {item.signal: item for item in read(**given).eviction.thresholds}
    assert found[NODEFS].percent == 1
    assert found[MEMORY] in BEFORE.eviction.thresholds


def test_what_becomes_of_memory():
    """[N16]"""
    assert read(memorySwap={"swapBehavior": "LimitedSwap"}).limited_swap
    assert read(singleProcessOOMKill=True).oom_group is False
    assert "cgroup v1" in refused(singleProcessOOMKill=False)[0]
    unified = replace(BEFORE, unified=True, oom_group=True)
    document = {"apiVersion": API_VERSION, "kind": KIND}
    assert with_configuration(unified, document).oom_group
    alone = with_configuration(unified, document | {"singleProcessOOMKill": True})
    assert not alone.oom_group


def test_what_is_shown_is_what_holds():
    """[N19] /configz"""
    document = {"apiVersion": API_VERSION, "kind": KIND, "syncFrequency": "0s", "maxPods": 7}
    shown = with_configuration(BEFORE, document).shown
    assert shown["syncFrequency"] == "1m0s"
    assert (shown["maxPods"], shown["port"], shown["podLogsDir"]) == (7, 10250, "/var/log/pods")
    assert shown["authentication"]["webhook"] == {"enabled": True, "cacheTTL": "2m0s"}
    assert shown["evictionHard"]["memory.available"] == str(100 << 20)


def test_what_is_reserved_adds_up_and_what_is_enforced_is_named():
    """[N16, N17]"""
    read_ = read(
        kubeReserved={"cpu": "100m", "memory": "64Mi"},
        systemReserved={"cpu": "1", "ephemeral-storage": "1Gi"},
        enforceNodeAllocatable=["none"],
        allowedUnsafeSysctls=["net.core.*"],
        maxPods=30,
        maxParallelImagePulls=2,
    )
    assert read_.reserved == Reserved(1100, 64 << 20, 1 << 30)
    assert read_.enforce_allocatable == ()
    assert (read_.max_pods, read_.parallel_image_pulls) == (30, 2)
    assert read_.allowed_unsafe_sysctls == ("net.core.*",)
    assert "not known to be namespaced" in refused(allowedUnsafeSysctls=["vm.swappiness"])[0]
    assert read(enforceNodeAllocatable=["pods"]).enforce_allocatable == ("pods",)
    assert "only pods" in refused(enforceNodeAllocatable=["system-reserved"])[0]
    assert "cannot be reserved" in refused(kubeReserved={"pid": "100"})[0]
    assert "less than 1" in refused(maxParallelImagePulls=0)[0]


def test_swap_is_for_nobody_unless_it_is_limited():
    """[H6]"""
    assert not read(memorySwap={}, failSwapOn=False).limited_swap
    found = read(memorySwap={"swapBehavior": "LimitedSwap"}, failSwapOn=True)
    assert (found.limited_swap, found.fail_swap_on) == (True, True)
    assert "must be one of" in refused(memorySwap={"swapBehavior": "UnlimitedSwap"})[0]


def test_the_periods_of_a_graceful_shutdown():
    """[N17]"""
    two = read(shutdownGracePeriod="30s", shutdownGracePeriodCriticalPods="10s").shutdown
    assert [(step.priority, step.seconds) for step in two] == [(0, 20.0), (2_000_000_000, 10.0)]
    listed = [{"priority": 100, "shutdownGracePeriodSeconds": 5}]
    many = read(shutdownGracePeriodByPodPriority=listed).shutdown
    assert [(step.priority, step.seconds) for step in many] == [(100, 5.0)]
    assert read(shutdownGracePeriod="0s").shutdown == ()
    assert "is longer than" in refused(shutdownGracePeriodCriticalPods="1s")[0]
    assert "one second at least" in refused(shutdownGracePeriod="500ms")[0]
    both = refused(shutdownGracePeriod="30s", shutdownGracePeriodByPodPriority=listed)
    assert "excludes" in both[0]


def test_every_field_that_is_heeded_is_documented():
    document = (Path(__file__).parents[3] / "docs" / "node.md").read_text()
    for name in heeded_fields():
        assert f"`{name}`" in document, name


@pytest.mark.kubernetes("1.37")
def test_queries_of_the_machine_s_logs_need_their_gate_and_the_logs():
    assert read(enableSystemLogQuery=True).system_log_queries
    assert refused(enableSystemLogQuery=True, enableSystemLogHandler=False) == [
        "enableSystemLogHandler is required for enableSystemLogQuery"
    ]
    with features.used(Release("1.35")):
        assert refused(enableSystemLogQuery=True) == [
            "enableSystemLogQuery: NodeLogQuery feature gate is required for enableSystemLogQuery"
        ]


@pytest.mark.parametrize(
    ("written", "microseconds"), [("5ms", 5_000), ("1s", 1_000_000), ("100ms", 100_000)]
)
def test_the_period_of_cpu_quotas_may_be_another_by_a_gate(written, microseconds):
    with features.used(Release("1.37")):
        assert read(cpuCFSQuotaPeriod=written).cpu_period == microseconds
        assert refused(cpuCFSQuotaPeriod="2s") == [
            "cpuCFSQuotaPeriod: 2s must be between 1ms and 1sec, inclusive"
        ]
