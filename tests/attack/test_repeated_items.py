"""A list of an object whose items are all the same: judging it takes as long as it is.

Of thousands of equal items a rule that compares each with all the others has millions of pairs to
look at, and to complain of: seconds, and gigabytes, of one small request.
"""

import json
import time

import pytest

from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.generators.heavy_objects import SHAPES
from tests.support.worlds.control_plane import published_schema

pytestmark = [pytest.mark.usefixtures("settled_memory"), pytest.mark.slow, pytest.mark.timeout(300)]

ITEMS = 1500
# Of the processor: 0.1 at most were measured; 1.3 of equal ports, more than 60 of constraints.
MOST_SECONDS = 0.75
MOST_ANSWERED = 1_000_000
SPREAD = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
NODE = {"metadata": {"name": "x"}}
CSI_NODES, RUNTIME_CLASSES = (
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/node.k8s.io/v1/runtimeclasses",
)
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PODS = "/api/v1/namespaces/default/pods"
# What is no shape of heavy objects, or only as a part of one.
OTHERS = {
    "spread constraints": (PODS, {**NODE, "spec": {
        "containers": [{"name": "c", "image": "i"}], "topologySpreadConstraints": [SPREAD]}}),
    "ports of two kinds": (PODS, {**NODE, "spec": {"containers": [{
        "name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}]}}),
    "keys of a driver": (CSI_NODES, {**NODE, "spec": {"drivers": [{
        "name": "a.b", "nodeID": "n", "topologyKeys": ["k"]}]}}),
    "tolerations of a class": (RUNTIME_CLASSES, {**NODE, "handler": "h", "scheduling": {
        "tolerations": [{"key": "k", "operator": "Exists"}]}}),
    "usages": (REQUESTS, {**NODE, "spec": {
        "request": "eA==", "signerName": "a.b/c", "usages": ["client auth"]}}),
    "actions": (BINDINGS, {**NODE, "spec": {"policyName": "p", "validationActions": ["Deny"]}}),
    "versions of reviews": (HOOKS, {**NODE, "webhooks": [{
        "name": "a.b.c", "sideEffects": "None", "clientConfig": {"url": "https://a.b/c"},
        "admissionReviewVersions": ["v1"]}]}),
    "families": ("/api/v1/namespaces/default/services", {**NODE, "spec": {
        "ports": [{"port": 80}], "ipFamilies": ["IPv4"]}}),
}  # fmt: skip


def longest_list(value, found=None):
    """The longest list in it, of those the outermost."""
    if isinstance(value, list) and (found is None or len(value) > len(found)):
        found = value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        found = longest_list(each, found)
    return found


def cases():
    for name, shape in SHAPES.items():
        made = shape.make(ITEMS)
        equal = longest_list(made)
        if equal is not None and len(equal) == ITEMS:
            equal[:] = [equal[0]] * ITEMS
            yield name, shape.path.format(namespace="default"), made
    for name, (path, made) in OTHERS.items():
        lists = [each for each in innermost_lists(made) if len(each) == 1]
        lists[-1][:] = lists[-1] * ITEMS
        yield name, path, made


def innermost_lists(value):
    if isinstance(value, list):
        yield value
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from innermost_lists(each)


def test_equal_items_cost_what_different_ones_do():
    async def main():
        slow, seen = {}, 0
        async with api_server(published_schema()) as api:
            for name, path, made in cases():
                body = json.loads(json.dumps(made))
                took = []
                for _ in range(3):  # the machine is shared: what counts is too long three times
                    began = time.process_time()
                    got = await api.send("POST", f"{path}?dryRun=All", body)
                    took.append(time.process_time() - began)
                    if took[-1] < MOST_SECONDS:
                        break
                seen += 1
                assert got.status in (201, 422), (name, got.body[:300])
                assert len(got.body) < MOST_ANSWERED, name
                if min(took) >= MOST_SECONDS:
                    slow[name] = took
        assert seen > 100
        assert slow == {}

    virtual_time.run(main())
