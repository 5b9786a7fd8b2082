"""metrics.k8s.io from what nodes say [N19] [C6]."""

import pytest

from sampan.api.calls import Call, Options
from sampan.api.errors import NotFound
from sampan.api.resources import NODE_METRICS, NODES, POD_METRICS, PODS
from sampan.apiserver.proxy.metrics_api import MetricsApi, parse_sample, pod_metrics, rates
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

BEFORE = """# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 10
node_memory_working_set_bytes 2048
container_cpu_usage_seconds_total{container="a",namespace="d",pod="p"} 1.5
container_memory_working_set_bytes{container="a",namespace="d",pod="p"} 4096
"""
AFTER = BEFORE.replace(" 1.5", " 2.5").replace("total 10", "total 14")
KEY = ("d", "p", "a")


def test_a_rate_is_the_difference_over_the_time_between():
    found = rates(parse_sample(BEFORE, 100.0), parse_sample(AFTER, 102.0))
    assert found.cpu_cores == {("", "", ""): 2.0, KEY: 0.5}
    assert found.memory_bytes[KEY] == 4096


def test_a_container_that_was_not_there_before_has_no_rate_yet():
    found = rates(parse_sample("", 100.0), parse_sample(AFTER, 102.0))
    pod = {"metadata": {"name": "p", "namespace": "d"}}
    assert pod_metrics(pod, found, 0.0) is None


def test_a_counter_that_began_anew_is_no_negative_rate():
    found = rates(parse_sample(AFTER, 100.0), parse_sample(BEFORE, 102.0))
    assert found.cpu_cores[KEY] == 0.0


def test_quantities_are_written_as_upstream_writes_them():
    found = rates(parse_sample(BEFORE, 100.0), parse_sample(AFTER, 102.0))
    shown = pod_metrics({"metadata": {"name": "p", "namespace": "d"}}, found, 0.0)
    assert shown is not None
    assert shown["containers"] == [{"name": "a", "usage": {"cpu": "500000000n", "memory": "4Ki"}}]


NODE = {
    "metadata": {"name": "n1"},
    "status": {"nodeInfo": {"containerRuntimeVersion": "simulated://1.0"}},
}


def simulated_pod(name, **annotations):
    notes = {f"simulated.sampan.dev/{key}": value for key, value in annotations.items()}
    resources = {"requests": {"cpu": "100m", "memory": "1Mi"}}
    return {
        "metadata": {"name": name, "namespace": "d", "annotations": notes, "labels": {"n": name}},
        "spec": {"nodeName": "n1", "containers": [{"name": "a", "resources": resources}]},
        "status": {"phase": "Running"},
    }


def ask(verb, resource, name="", **words):
    objects = {
        NODES: [NODE],
        PODS: [simulated_pod("one"), simulated_pod("two", **{"usage-cpu": "2"})],
    }
    api = MetricsApi(lambda kind: objects[kind], None, LoopClock())
    options = Options(field_selector=words.get("fields", ""))
    call = Call(verb, resource, words.get("namespace", ""), name, options=options)
    return virtual_time.run((api.nodes if resource is NODE_METRICS else api.pods)(call))


def test_simulated_pods_use_what_they_say_or_ask_for():
    listed = ask("list", POD_METRICS).items
    cpus = [one.obj["containers"][0]["usage"]["cpu"] for one in listed]
    assert cpus == ["100000000n", "2000000000n"]
    node = ask("get", NODE_METRICS, "n1").obj
    assert node["usage"] == {"cpu": "2100000000n", "memory": "2048Ki"}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("metadata.name=two", ["two"]),
        ("metadata.name!=two,metadata.namespace=d", ["one"]),
        ("metadata.namespace=e", []),
        ("spec.nodeName=n1", []),
    ],
)
def test_usage_is_selected_by_names(fields, names):
    listed = ask("list", POD_METRICS, fields=fields).items
    assert [one.obj["metadata"]["name"] for one in listed] == names


def test_what_does_not_run_is_not_found():
    with pytest.raises(NotFound, match=r'podmetrics.metrics.k8s.io "d/three" not found') as raised:
        ask("get", POD_METRICS, "three", namespace="d")
    assert raised.value.status()["details"] == {
        "name": "d/three", "group": "metrics.k8s.io", "kind": "podmetrics",
    }  # fmt: skip
