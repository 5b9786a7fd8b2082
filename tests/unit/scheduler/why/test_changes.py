from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from sampan.scheduler.why.changes import amount_text, changes
from tests.support.generators.random_clusters import snapshot_of


def node(name, cpu="2", taints=(), labels=None):
    amounts = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
    meta = {"name": name, "labels": labels or {}}
    return {"metadata": meta, "spec": {"taints": list(taints)}, "status": {"allocatable": amounts}}


def pod(cpu="1", **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    if port := spec.pop("port", None):
        container["ports"] = [{"hostPort": port}]
    meta = {"name": "p", "uid": "p", "namespace": "default", "labels": {"app": "a"}}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def found(made, nodes, placed=None):
    there = snapshot_of((nodes, placed or {}))
    shape = pod_info_of(made).shape
    return {one.text: one.nodes for one in changes(shape, there, DEFAULT_PROFILE)}


GPU = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]


def test_a_smaller_request_is_named_with_the_nodes_that_it_opens():
    """[X2]"""
    nodes = [node("a", "1500m"), node("b", "1500m"), node("c", "1")]
    assert found(pod("4"), nodes) == {"lower cpu request to 1500m": 2}


def test_a_toleration_is_named_by_its_taint():
    """[X2]"""
    nodes = [node("a", taints=GPU), node("b", taints=GPU), node("c", "100m")]
    assert found(pod("1"), nodes) == {"tolerate dedicated=gpu": 2, "lower cpu request to 100m": 1}


def test_what_stands_in_the_way_alone_is_named():
    """[X2]"""
    nodes = [node("a", labels={"disk": "hdd"})]
    assert found(pod(nodeSelector={"disk": "ssd"}), nodes) == {"drop disk=ssd from nodeSelector": 1}
    holder = pod(port=80)
    holder["metadata"]["uid"] = "holder"
    assert found(pod("100m", port=80), nodes, {"a": [holder]}) == {"give up host port 80": 1}
    apart = [{"topologyKey": "disk", "labelSelector": {"matchLabels": {"app": "a"}}}]
    lonely = pod(
        "100m",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}},
    )
    assert found(lonely, nodes, {"a": [holder]}) == {"drop the required pod anti-affinity": 1}


def test_where_two_things_stand_in_the_way_nothing_is_promised():
    nodes = [node("a", "1", taints=GPU)]
    assert found(pod("4"), nodes) == {}
    assert found(pod("4"), []) == {}


def test_amounts_read_as_people_write_them():
    assert amount_text("cpu", 1500) == "1500m"
    assert amount_text("cpu", 2000) == "2"
    assert amount_text("memory", 3 * 2**30) == "3Gi"
    assert amount_text("example.com/gpu", 3) == "3"
