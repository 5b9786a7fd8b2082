"""docs/metrics/: what the dashboard asks for is exported, and Prometheus' own parser reads it."""

import asyncio
import io
import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from sampan.api.resources import NODES, PODS
from sampan.client import kubeconfig
from sampan.client.blocking import BlockingClient
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock
from tests.support.generators.api_requests import pod

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "docs" / "metrics"
SCRAPED = {"job", "instance", "le"}  # labels that come with the scrape, and of every histogram
SELECTED = re.compile(r"\b([a-z_]+)(\{[^}]*\})?(?:\[|\)|$)")
GROUPED = re.compile(r"by \(([^)]*)\)")
# Of real nodes alone: tests/e2e/test_trace.py looks at them.
REAL = {"kubelet_running_pods", "kubelet_running_containers"}
# What clusters are watched by: rules of kubernetes-mixin and of Prometheus' own examples.
ALERTED = {
    "apiserver_request_total", "apiserver_request_duration_seconds", "etcd_requests_total",
    "etcd_request_duration_seconds", "apiserver_current_inflight_requests",
    "aggregator_unavailable_apiservice", "workqueue_depth", "workqueue_adds_total",
    "workqueue_queue_duration_seconds", "scheduler_pending_pods",
    "scheduler_scheduling_attempt_duration_seconds",
    "kubelet_pod_worker_duration_seconds", "kubelet_pod_start_duration_seconds",
    "kubelet_pleg_relist_duration_seconds", "kubelet_runtime_operations_errors_total",
    "process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds",
    "kubernetes_build_info",
}  # fmt: skip

# Upstream's stable and beta metrics: docs/compatibility.md names what is not there.
NOT_THERE = {
    "apiserver_cel_compilation_duration_seconds", "apiserver_cel_evaluation_duration_seconds",
    "apiserver_storage_size_bytes",
    "apiserver_validation_declarative_validation_mismatch_total",
    "apiserver_validation_declarative_validation_panic_total",
    "disabled_metrics_total",
    "hidden_metrics_total", "kube_pod_resource_limit", "kube_pod_resource_request",
    "kubelet_image_volume_mounted_errors_total", "kubelet_image_volume_mounted_succeed_total",
    "kubelet_image_volume_requested_total",
    "registered_metrics_total", "scheduler_framework_extension_point_duration_seconds",
    "scheduler_queue_incoming_pods_total",
}  # fmt: skip
# Declared when there is the first of what they count.
WITH_THE_FIRST = {
    "apiserver_admission_webhook_admission_duration_seconds",
    "apiserver_validating_admission_policy_check_duration_seconds",
    "apiserver_validating_admission_policy_check_total",
    *(
        f"apiserver_{what}_config_controller_automatic_reload{tail}"
        for what in ("authentication", "authorization")
        for tail in ("_last_timestamp_seconds", "s_total")
    ),
}
# /metrics/slis, and of real nodes /metrics/resource and /metrics/probes.
AT_OTHER_PATHS = {
    "container_cpu_usage_seconds_total", "container_memory_working_set_bytes",
    "container_start_time_seconds", "kubernetes_healthcheck", "kubernetes_healthchecks_total",
    "node_cpu_usage_seconds_total", "node_memory_working_set_bytes", "pod_cpu_usage_seconds_total",
    "pod_memory_working_set_bytes", "prober_probe_total", "resource_scrape_error",
}  # fmt: skip


def expressions():
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def families(text):
    """Counters are named as in the text, with _total."""
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: family
        for family in text_string_to_metric_families(text)
    }


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """What the API server and a node answer, and what was declared: kinds and labels."""
    folder = tmp_path_factory.mktemp("cluster")

    async def scenario():
        data, clock = open_data_dir(str(folder)), SystemClock()
        settings = UpSettings(data_dir=str(folder), port=0, runtime="simulated", nodes=1)
        cluster = AllInOne(settings, data, Progress(io.StringIO(), clock), clock)
        await cluster.start()
        connection = kubeconfig.load(str(data.kubeconfig), {}, "").connection()
        try:
            texts = await asyncio.to_thread(scrape, connection)
            declared = cluster._metrics._metrics
            return *texts, {name: (item.kind, item.labels) for name, item in declared.items()}
        finally:
            await cluster.stop()

    return asyncio.run(scenario())


def scrape(connection):
    client = BlockingClient(connection, timeout_seconds=60.0)
    try:
        path = f"/api/v1/namespaces/default/{PODS.plural}"
        client.json("POST", path, body=pod("web"))
        for kind, found in client.watch(path, {"timeoutSeconds": "60"}):
            if kind != "DELETED" and found["status"].get("phase") == "Running":
                break
        [node] = client.json("GET", f"/api/v1/{NODES.plural}")["items"]
        name = node["metadata"]["name"]
        paths = ("/metrics", f"/api/v1/nodes/{name}/proxy/metrics")
        return [client.ask("GET", path).body.decode() for path in paths]
    finally:
        client.close()


def test_everything_that_the_dashboard_asks_for_is_there_with_its_labels(exported):
    server, _, declared = exported
    known = families(server)
    asked = set()
    for expression in expressions():
        plain = expression.replace("$__rate_interval", "1m")
        for metric, selector in SELECTED.findall(GROUPED.sub("", plain)):
            if metric in REAL:
                continue
            name = metric if metric in known else metric.rpartition("_")[0]
            assert name in known, (metric, expression)
            asked.add(name)
            groups = [word.strip() for found in GROUPED.findall(plain) for word in found.split(",")]
            used = {*groups, *re.findall(r"([a-z_]+)=", selector)} - SCRAPED
            assert used <= set(declared[name][1]), (metric, expression)
    assert len(asked) > 20


def test_what_people_alert_on_is_there(exported):
    server, _, _ = exported
    assert families(server).keys() >= ALERTED


def test_what_upstream_keeps_stable_has_its_kind_and_its_labels(exported):
    """Of a recorded list: what is not there is named, so that it is known when it comes."""
    _, _, declared = exported
    facts = json.loads((Path(__file__).parent / "recorded" / "stable_metrics.json").read_text())
    there = {name: fact for name, fact in facts.items() if name in declared}
    assert facts.keys() - there.keys() == {*NOT_THERE, *WITH_THE_FIRST, *AT_OTHER_PATHS}
    wrong = {
        name: declared[name]
        for name, fact in there.items()
        if fact["type"] not in (declared[name][0], "custom")
        or fact["labels"] != sorted(declared[name][1])
    }
    assert wrong == {}


def test_every_line_is_as_prometheus_wants_it_and_what_happened_is_counted(exported):
    server, node, _ = exported
    found = families(server)
    writes = {
        sample.labels["operation"]: sample.value
        for sample in found["etcd_requests_total"].samples
        if sample.labels["resource"] == "pods"
    }
    assert writes["create"] >= 1
    assert writes["update"] >= 1
    [started] = found["process_start_time_seconds"].samples
    assert started.value > 1_700_000_000
    [memory] = found["process_resident_memory_bytes"].samples
    assert memory.value > 1_000_000
    assert "kubelet_pod_start_duration_seconds" in families(node)


def test_the_scrape_example_is_one():
    written = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in written["scrape_configs"]}
    assert {"apiserver", "kube-scheduler", "kube-controller-manager", "kubelet"} <= jobs.keys()
    assert all(job["scheme"] == "https" for job in jobs.values())
