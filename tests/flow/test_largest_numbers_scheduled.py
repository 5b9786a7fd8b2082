"""The scheduler does not walk over a number that an object says."""

import random
import tracemalloc

import pytest

from sampan.api.objects import copy_of
from sampan.api.resources import (
    CSI_NODES,
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from sampan.api.schema.published import Schema
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from tests.support import virtual_time
from tests.support.generators.device_objects import (
    device,
    device_class,
    device_request,
    resource_claim,
    resource_slice,
)
from tests.support.generators.largest_objects import filled
from tests.support.processor_time import quickest_seconds
from tests.support.workload_lives.manifests import made, pod
from tests.support.worlds.small_api import SmallApi

MORE_SECONDS = 0.010  # of the processor, than with ordinary numbers
MORE_BYTES = 1_000_000
TRIES = 3

SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
NEAR = {"labelSelector": {}, "topologyKey": "zone"}
SELECTOR = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
AFFINITY = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": NEAR, "weight": 1}]
    },
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"preference": SELECTOR, "weight": 1}]
    },
}
EXACT = {"name": "r", "exactly": device_request(allocationMode="ExactCount", count=1)}
SUBREQUEST = {"name": "s", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
FIRST = {"name": "r", "firstAvailable": [SUBREQUEST]}
NODE = made("v1", "Node", "n", {}) | {
    "metadata": {"name": "n", "labels": {"zone": "a", "a": "1"}},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "images": [{"names": ["x"], "sizeBytes": 1}],
    },
}
WITH_CLAIM = {"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}
STORIES = {
    "spread": (pod(topologySpreadConstraints=[SPREAD | {"maxSkew": 1}]), []),
    "affinity": (pod(affinity=AFFINITY), []),
    "priority": (pod(cpu="8", priority=1), []),
    "ports": (pod(hostNetwork=True), []),
    "exact count": (pod(**WITH_CLAIM), [EXACT]),
    "first available": (pod(**WITH_CLAIM), [FIRST]),
}


def objects(written, requests):
    card = resource_slice("s", [device("gpu-0"), device("gpu-1")], nodeName="n")
    yield NODES, NODE
    yield CSI_NODES, made("storage.k8s.io/v1", "CSINode", "n", {"drivers": [
        {"name": "d", "nodeID": "n", "allocatable": {"count": 1}},
    ]})  # fmt: skip
    yield DEVICE_CLASSES, device_class()
    yield RESOURCE_SLICES, card
    if requests:
        yield RESOURCE_CLAIMS, resource_claim("c", requests)
    ported = copy_of(written)
    ported["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": 1}]
    yield PODS, ported


@pytest.mark.parametrize("story", STORIES)
def test_a_decision_costs_no_more_where_the_numbers_are_the_largest(story):
    schema = Schema.load()
    ordinary = list(objects(*STORIES[story]))
    # Of a pool in parts, the numbers say how many there are: such a slice is never whole.
    largest = [
        (resource, obj if resource == RESOURCE_SLICES else filled(schema, obj))
        for resource, obj in ordinary
    ]
    run(ordinary)  # what is loaded once
    assert cost(largest, time_of) < cost(ordinary, time_of) + MORE_SECONDS
    assert cost(largest, memory_of) < cost(ordinary, memory_of) + MORE_BYTES


def cost(there, measured):
    return min(measured(there) for _ in range(TRIES))


def time_of(there):
    return quickest_seconds(lambda: run(there), tries=1)


def memory_of(there):
    tracemalloc.start()
    try:
        run(there)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def run(there):
    async def main():
        clock = virtual_time.LoopClock()
        api, tasks = SmallApi(clock), Tasks("test")
        for resource, obj in there:
            namespace = "default" if resource in (PODS, RESOURCE_CLAIMS) else None
            await api.create(resource, copy_of(obj), namespace)
        scheduler = Scheduler(api, clock=clock, rng=random.Random(1), metrics=Metrics())
        tasks.start("scheduler", scheduler.run())
        await clock.sleep(3)
        await tasks.stop()
        assert api.objects(EVENTS), "it was not tried"

    virtual_time.run(main())
