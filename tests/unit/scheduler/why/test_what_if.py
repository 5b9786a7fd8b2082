import asyncio
import random

import pytest

from sampan.api.errors import Forbidden, NotFound
from sampan.api.resources import CSI_DRIVERS, NODES, RESOURCE_SLICES
from sampan.client.contract import Listed
from sampan.scheduler.decision.decide import Chosen
from sampan.scheduler.why.what_if import (
    TooManyPods,
    dry_run,
    explain,
    fetch_objects,
    pods_in,
)


def node(name, cpu="2"):
    amounts = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {},
        "status": {"allocatable": amounts},
    }


def pod(name, cpu="1", **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def test_each_pod_of_a_dry_run_counts_for_the_next_the_most_important_first():
    """[X2]"""
    there = [node("a"), pod("old", nodeName="a")]
    found = dry_run([pod("low"), pod("high", priority=5)], there, random.Random(1))
    assert [(one.pod["metadata"]["name"], isinstance(one.decision, Chosen)) for one in found] == [
        ("high", True), ("low", False)
    ]  # fmt: skip
    assert found[1].message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_that_has_a_node_is_explained_as_if_it_came_anew():
    there = [node("a"), pod("me", cpu="2", nodeName="a")]
    found = explain(there[1], there)
    assert isinstance(found.decision, Chosen)
    assert found.changes == []
    assert found.best[0][0] == "a"


def test_manifests_that_make_pods_are_opened():
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    deployment = {"kind": "Deployment", "metadata": {"name": "d"}}
    deployment["spec"] = {"replicas": 2, "template": template}
    job = {
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "x"},
        "spec": {"template": template},
    }
    made = pods_in([{"kind": "List", "items": [deployment, job, pod("p")]}, node("n")], "here")
    assert [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in made] == [
        ("here", "d-0"), ("here", "d-1"), ("x", "j-0"), ("default", "p")
    ]  # fmt: skip


def test_what_a_user_may_not_see_or_a_cluster_does_not_have_is_done_without():
    class Client:
        def __init__(self, missing):
            self.missing = missing

        async def list(self, resource):
            if resource in self.missing:
                raise self.missing[resource]
            return Listed([{"metadata": {"name": resource.plural}}], 1)

    absent = {RESOURCE_SLICES: NotFound("no such kind"), CSI_DRIVERS: Forbidden("not for you")}
    found = asyncio.run(fetch_objects(Client(absent)))
    kinds = {one["kind"] for one in found}
    assert {"Node", "Pod", "Service"} <= kinds
    assert not kinds & {"ResourceSlice", "CSIDriver"}
    with pytest.raises(Forbidden):
        asyncio.run(fetch_objects(Client({NODES: Forbidden("not for you")})))


def test_a_manifest_that_asks_for_more_pods_than_can_be_looked_at_is_refused():
    template = {"spec": {"containers": [{"name": "c"}]}}
    spec = {"replicas": 2_000_000_000, "template": template}
    many = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    with pytest.raises(TooManyPods, match="web asks for 2000000000 pods"):
        pods_in([many], "default")
