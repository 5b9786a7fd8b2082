"""Rows of nodes, events and the small things."""

from sampan.apiserver.printers import cluster

NOW = 1_700_000_000.0


def test_nodes():
    labels = {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge"}
    node = {
        "metadata": {"name": "n", "labels": labels},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.35.0", "osImage": "Linux"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }
    assert cluster.NODES.cells(node, NOW) == [
        "n", "Ready,SchedulingDisabled", "control-plane,edge", "<unknown>", "v1.35.0", "10.0.0.1",
        "<none>", "Linux", "<unknown>", "<unknown>",
    ]  # fmt: skip
    down = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    assert cluster.NODES.cells(down, NOW)[1:3] == ["NotReady", "<none>"]
    assert cluster.NODES.cells({}, NOW)[1] == "Unknown"


def test_events_of_both_groups():
    about = {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{a}"}
    core = {
        "metadata": {"name": "e"}, "type": "Normal", "reason": "Pulled", "involvedObject": about,
        "message": " done\n", "count": 3, "source": {"component": "kubelet", "host": "n"},
        "firstTimestamp": "2023-11-14T22:12:20Z", "lastTimestamp": "2023-11-14T22:13:10Z",
    }  # fmt: skip
    assert cluster.EVENTS.cells(core, NOW) == [
        "10s", "Normal", "Pulled", "pod/p", "spec.containers{a}", "kubelet, n", "done", "60s", 3,
        "e",
    ]  # fmt: skip
    newer = {
        "regarding": {"kind": "Node"}, "note": "x", "eventTime": "2023-11-14T22:13:10.000000Z",
        "reportingController": "me",
    }  # fmt: skip
    row = cluster.EVENTS.cells(newer, NOW)
    assert (row[0], row[3], row[5], row[6], row[8]) == ("10s", "node", "me", "x", 1)
    series = {**newer, "series": {"count": 7, "lastObservedTime": "2023-11-14T22:13:19.000000Z"}}
    assert cluster.EVENTS.cells(series, NOW)[0] == "1s"
    assert cluster.EVENTS.cells(series, NOW)[8] == 7


def test_quotas_split_requests_and_limits():
    hard = {"pods": "10", "limits.cpu": "4"}
    obj = {"status": {"hard": hard, "used": {"pods": "2"}}}
    assert cluster.RESOURCE_QUOTAS.cells(obj, NOW)[1:3] == ["pods: 2/10", "limits.cpu: 0/4"]


def test_the_rest_of_the_core():
    assert cluster.SECRETS.cells({"type": "Opaque", "data": {"a": ""}}, NOW)[1:3] == ["Opaque", 1]
    assert cluster.CONFIG_MAPS.cells({"data": {"a": ""}, "binaryData": {"b": ""}}, NOW)[1] == 2
    assert cluster.LEASES.cells({"spec": {"holderIdentity": "me"}}, NOW)[1] == "me"
    healthy = {"conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]}
    assert cluster.COMPONENT_STATUSES.cells(healthy, NOW)[1:] == ["Healthy", "ok", ""]
    assert cluster.PRIORITY_CLASSES.cells({"value": 5}, NOW)[1:3] == [5, False]
