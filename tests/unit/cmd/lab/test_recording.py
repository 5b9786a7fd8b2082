"""A live cluster's pods and nodes as files that the lab reads."""

from sampan.cmd.lab.recording import nodes_document, workload_document
from sampan.cmd.lab.workload import workload_of
from sampan.kubelet.simulated.node_types import shapes_of


def pod(name, created="2026-01-01T00:00:00Z", phase="Running", spec=None, owner="", status=None):
    return {
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created,
                     "labels": {"app": "x"}, "uid": name,
                     "ownerReferences": [{"kind": owner}] if owner else []},
        "spec": {"containers": [{"name": "c", "image": "nginx", "env": [{"name": "A"}],
                                 "resources": {"requests": {"cpu": "1"}}}],
                 "nodeName": "n", "serviceAccountName": "default", **(spec or {})},
        "status": {"phase": phase, **(status or {})},
    }  # fmt: skip


def test_pods_come_in_their_order_with_what_decides_their_place():
    over = {"containerStatuses": [{"state": {"terminated": {
        "startedAt": "2026-01-01T00:01:00Z", "finishedAt": "2026-01-01T00:03:00Z"}}}]}  # fmt: skip
    tolerations = [{"key": "gpu"}, {"key": "node.kubernetes.io/not-ready"}]
    document = workload_document(
        [
            pod("late", "2026-01-01T00:01:00Z", "Succeeded", status=over),
            pod("first", spec={"tolerations": tolerations, "nodeSelector": {"disk": "ssd"}}),
            pod("agent", owner="DaemonSet"),
        ],
        [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5,
          "metadata": {"name": "high", "uid": "u"}},
         {"metadata": {"name": "system-node-critical"}}],
    )  # fmt: skip
    found = workload_of(document)
    first, late = found.pods
    assert (first.name, first.at_seconds, first.duration_seconds) == ("first", 0, None)
    assert (late.at_seconds, late.duration_seconds) == (60, 120)
    assert first.template["spec"] == {
        "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu"}],
        "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}],
    }  # fmt: skip
    assert [obj["metadata"] for _, obj in found.objects] == [{"name": "high"}]


def test_nodes_that_are_alike_are_one_type():
    def node(name, cpu, taints=()):
        return {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "disk": "ssd"}},
            "spec": {"taints": [*taints]},
            "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "hugepages-2Mi": "0"}},
        }

    gone = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    own = {"key": "gpu", "effect": "NoSchedule"}
    nodes = [node("a", "4"), node("b", "4", [gone]), node("c", "8", [own])]
    shapes = shapes_of(nodes_document(nodes))
    assert [shape.name for shape in shapes] == ["type-0-0", "type-0-1", "type-1-0"]
    assert [shape.capacity.cpu_milli for shape in shapes] == [4000, 4000, 8000]
    assert [shape.labels["disk"] for shape in shapes] == ["ssd"] * 3
    assert [shape.taints for shape in shapes] == [(), (), (own,)]
