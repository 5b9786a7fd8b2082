"""Stages in KWOK's form: Nodes and Pods without an agent, and kinds of somebody else."""

import yaml

from sampan.api.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    JOBS,
    LEASES,
    NODES,
    PODS,
    Resource,
)
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import selected_controllers
from sampan.controllers.stages.stage_controller import stage_controller
from sampan.controllers.stages.stage_file import stages_of
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.control_plane import ControlPlane

NODE_STAGES = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-arrives}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
      operator: NotIn
      values: ['True']
  next:
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      {{ range NodeConditions }}
      - lastHeartbeatTime: {{ $now | Quote }}
        lastTransitionTime: {{ or $.metadata.creationTimestamp $now | Quote }}
        message: {{ .message | Quote }}
        reason: {{ .reason | Quote }}
        status: {{ .status | Quote }}
        type: {{ .type | Quote }}
      {{ end }}
      addresses:
      {{ with .status.addresses }}
      {{ YAML . 1 }}
      {{ else }}
      - address: {{ NodeIP | Quote }}
        type: InternalIP
      {{ end }}
      allocatable:
      {{ with .status.allocatable }}
      {{ YAML . 1 }}
      {{ else }}
        cpu: "32"
        pods: "110"
      {{ end }}
      nodeInfo:
        architecture: {{ or .status.nodeInfo.architecture "amd64" }}
      phase: Running
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-heartbeat}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - {key: .status.phase, operator: In, values: [Running]}
    - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
      operator: In
      values: ['True']
  delay: {durationMilliseconds: 20000, jitterDurationMilliseconds: 25000}
  immediateNextStage: true
  next:
    statusTemplate: |
      conditions:
      {{ range NodeConditions }}
      - type: {{ .type | Quote }}
        status: {{ .status | Quote }}
        lastHeartbeatTime: {{ Now | Quote }}
      {{ end }}
"""
POD_STAGES = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.podIP, operator: DoesNotExist}
  delay:
    durationMilliseconds: 1000
    durationFrom:
      expressionFrom: '.metadata.annotations["pod-ready.stage.example.com/delay"]'
  next:
    event: {type: Normal, reason: Created, message: Created container}
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      - {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
      containerStatuses:
      {{ range $index, $item := .spec.containers }}
      - image: {{ $item.image | Quote }}
        name: {{ $item.name | Quote }}
        ready: true
        restartCount: 0
        state: {running: {startedAt: {{ $now | Quote }}}}
      {{ end }}
      hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
      {{ $meta := .metadata }}
      {{ $host := or .spec.hostNetwork false }}
      podIP: {{ PodIPWith .spec.nodeName $host $meta.uid $meta.name $meta.namespace | Quote }}
      phase: Running
      startTime: {{ $now | Quote }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-complete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Running]}
    - {key: '.metadata.ownerReferences.[].kind', operator: In, values: [Job]}
  delay: {durationMilliseconds: 5000}
  next:
    statusTemplate: |
      {{ $root := . }}
      containerStatuses:
      {{ range $index, $item := .spec.containers }}
      {{ $origin := index $root.status.containerStatuses $index }}
      - name: {{ $item.name | Quote }}
        image: {{ $origin.image | Quote }}
        imageID: ""
        ready: false
        restartCount: 0
        state: {terminated: {exitCode: 0, reason: Completed}}
      {{ end }}
      phase: Succeeded
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-delete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  next: {delete: true}
"""


def stage(name, kind, selector, steps, api_group="example.com/v1", **more):
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": api_group, "kind": kind}, "selector": selector,
            "steps": steps, **more,
        },
    }  # fmt: skip


def played(*stages, beside=()):
    """Makes a test of `async def test_…(plane)` in which these Stages are played."""
    documents = [
        document
        for given in stages
        for document in (yaml.safe_load_all(given) if isinstance(given, str) else [given])
    ]

    def controllers():
        settings = ControllerSettings(root_ca="PEM", clock=LoopClock())
        others = selected_controllers(all_controllers(settings), beside)
        return [*others, stage_controller(stages_of(documents))]

    def decorated(test):
        async def inside():
            async with ControlPlane(controllers) as plane:
                await plane.settled()
                await test(plane)

        def run():
            virtual_time.run(inside())

        run.__name__ = test.__name__
        return run

    return decorated


async def make_node(plane, name="n", **more):
    meta = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, **more}
    await plane.client.create(NODES, node)


async def make_pod(plane, name="p", node="n", **annotations):
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    return await plane.client.create(PODS, pod)


async def phase(plane, name="p"):
    return (await plane.client.get(PODS, "default", name))["status"].get("phase")


def is_ready(node):
    return [item["status"] for item in node["status"]["conditions"] if item["type"] == "Ready"]


@played(NODE_STAGES, beside=["node-lifecycle-controller"])
async def test_a_fake_node_becomes_ready_and_stays_so(plane):
    await make_node(plane)
    await plane.settled(600)
    node = await plane.client.get(NODES, "", "n")
    assert is_ready(node) == ["True"]
    assert node["status"]["addresses"] == [{"type": "InternalIP", "address": "192.0.2.1"}]
    assert node["status"]["allocatable"] == {"cpu": "32", "pods": "110"}
    assert not node["spec"].get("taints")
    beat = node["status"]["conditions"][0]["lastHeartbeatTime"]
    await plane.settled(30)
    assert (await plane.client.get(NODES, "", "n"))["status"]["conditions"][0][
        "lastHeartbeatTime"
    ] > beat
    lease = await plane.client.get(LEASES, "kube-node-lease", "n")
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


@played(NODE_STAGES, POD_STAGES)
async def test_nodes_of_others_are_left_alone_and_so_are_their_pods(plane):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    await plane.client.create(NODES, node)
    await make_pod(plane)
    await plane.settled(60)
    assert not (await plane.client.get(NODES, "", "n"))["status"].get("conditions")
    assert await phase(plane) == "Pending"
    leases = await plane.client.list(LEASES, "kube-node-lease")
    assert leases.items == []

    patch = {"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}}
    await plane.client.patch(NODES, "", "n", patch)
    await plane.settled(2)
    assert await phase(plane) == "Running"


@played(NODE_STAGES, POD_STAGES)
async def test_a_pod_runs_after_its_delay_and_goes_when_it_is_deleted(plane):
    await make_node(plane)
    await make_pod(plane)
    await plane.settled()
    assert await phase(plane) == "Pending"
    await plane.settled(1.5)
    status = (await plane.client.get(PODS, "default", "p"))["status"]
    assert (status["phase"], status["podIP"], status["hostIP"]) == (
        "Running", "10.0.0.2", "192.0.2.1",
    )  # fmt: skip
    assert status["containerStatuses"][0]["ready"] is True
    events = (await plane.client.list(EVENTS, "default")).items
    assert [item["message"] for item in events if item["reason"] == "Created"] == [
        "Created container"
    ]
    await plane.client.delete(PODS, "default", "p")
    await plane.settled()
    assert (await plane.client.list(PODS, "default")).items == []


@played(NODE_STAGES, POD_STAGES)
async def test_a_delay_is_taken_from_the_object_and_addresses_from_the_node(plane):
    await make_node(plane, spec={"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]})
    for name in ("a", "b"):
        await make_pod(plane, name, **{"pod-ready.stage.example.com/delay": "1h"})
    await plane.settled(3599)
    assert await phase(plane, "a") == "Pending"
    await plane.settled(2)
    pods = (await plane.client.list(PODS, "default")).items
    assert {pod["status"]["podIP"] for pod in pods} == {"10.9.0.2", "10.9.0.3"}


@played(NODE_STAGES, POD_STAGES, beside=["job-controller"])
async def test_a_job_on_fake_nodes_completes(plane):
    await make_node(plane)
    spec = {"nodeName": "n", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"},
        "spec": {"completions": 2, "parallelism": 1, "template": {"spec": spec}},
    }  # fmt: skip
    await plane.client.create(JOBS, job)
    await plane.settled(30)
    status = (await plane.client.get(JOBS, "default", "j"))["status"]
    assert status["succeeded"] == 2


WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",
                  "listKind": "WidgetList"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }],
    },
}  # fmt: skip
HOLD = "example.com/hold"
WIDGET_STAGES = (
    stage(
        "held", "Widget",
        {"matchExpressions": [{"cel": {"expression": "!has(self.metadata.finalizers)"}},
                              {"cel": {"expression": "!has(self.metadata.deletionTimestamp)"}}]},
        [{"finalizers": {"add": [{"value": HOLD}]}}],
    ),
    stage(
        "built", "Widget",
        {"matchLabels": {"build": "yes"},
         "matchExpressions": [{"jq": {"key": ".status.phase", "operator": "DoesNotExist"}},
                              {"key": ".metadata.finalizers", "operator": "Exists"}]},
        [
            {"apply": {"template": "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-"
                       "{{ .metadata.name }}}, data: {size: '{{ .spec.size }}'}}"}},
            {"patch": {"root": "status", "subresource": "status",
                       "template": "phase: Built\nat: {{ Now | Quote }}"}},
            {"patch": {"type": "json", "root": "spec",
                       "template": "- {op: add, path: /built, value: true}"}},
            {"event": {"type": "Normal", "reason": "Built", "message": "it is there"}},
        ],
        delay={"durationMilliseconds": 90000},
    ),
    stage(
        "released", "Widget",
        {"matchExpressions": [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]},
        [{"finalizers": {"empty": True}}],
        delay={"durationMilliseconds": 1000},
    ),
)  # fmt: skip


@played(*WIDGET_STAGES)
async def test_objects_of_a_kind_that_comes_later_move_on(plane):
    await plane.client.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
    await plane.settled(1)
    meta = {"name": "w", "namespace": "default", "labels": {"build": "yes"}}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta,
              "spec": {"size": 1000000}}  # fmt: skip
    await plane.client.create(WIDGETS, widget)
    await plane.settled(80)
    found = await plane.client.get(WIDGETS, "default", "w")
    assert found["metadata"]["finalizers"] == [HOLD]
    assert "status" not in found
    await plane.settled(20)
    found = await plane.client.get(WIDGETS, "default", "w")
    assert (found["status"]["phase"], found["spec"]) == ("Built", {"size": 1000000, "built": True})
    made = await plane.client.get(CONFIG_MAPS, "default", "of-w")
    assert made["data"] == {"size": "1000000"}
    events = (await plane.client.list(EVENTS, "default")).items
    assert [item["involvedObject"]["name"] for item in events if item["reason"] == "Built"] == ["w"]

    await plane.client.delete(WIDGETS, "default", "w")
    await plane.settled(2)
    assert (await plane.client.list(WIDGETS, "default")).items == []


BROKEN = stage(
    "broken", "ConfigMap", {"matchLabels": {"break": "yes"}},
    [{"patch": {"template": "data: {{ index .data.list 3 }}"}}], api_group="v1",
)  # fmt: skip


@played(BROKEN)
async def test_a_template_that_fails_is_told_once_and_tried_again_when_the_object_changes(plane):
    meta = {"name": "m", "namespace": "default", "labels": {"break": "yes"}}
    await plane.client.create(
        CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}
    )
    await plane.settled(600)
    events = (await plane.client.list(EVENTS, "default")).items
    assert [(item["reason"], item["count"]) for item in events] == [("StageFailed", 1)]
    assert "broken" in events[0]["message"]
    patch = {"metadata": {"labels": {"break": "no"}}}
    await plane.client.patch(CONFIG_MAPS, "default", "m", patch, patch_type="merge")
    await plane.settled(600)
    assert len((await plane.client.list(EVENTS, "default")).items) == 1


TO_AND_FRO = [
    stage(
        f"to-{there}", "ConfigMap", {"matchLabels": {"at": here}},
        [{"patch": {"template": f"metadata: {{labels: {{at: {there}}}}}"}}], api_group="v1",
    )
    for here, there in (("a", "b"), ("b", "a"))
]  # fmt: skip


@played(*TO_AND_FRO)
async def test_stages_that_lead_to_each_other_do_not_stop_the_clock(plane):
    meta = {"name": "m", "namespace": "default", "labels": {"at": "a"}}
    made = await plane.client.create(
        CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    )
    await plane.settled(60)
    found = await plane.client.get(CONFIG_MAPS, "default", "m")
    passed = int(found["metadata"]["resourceVersion"]) - int(made["metadata"]["resourceVersion"])
    assert 20 <= passed <= 100


TIRED = stage(
    "node-tired", "Node",
    {"matchExpressions": [{"key": ".metadata.labels.tired", "operator": "DoesNotExist"}]},
    [{"patch": {"template": "metadata: {labels: {tired: very}}"}}],
    api_group="v1", delay={"durationMilliseconds": 3_600_000},
)  # fmt: skip


@played(POD_STAGES, TIRED)
async def test_of_a_node_with_an_agent_only_the_node_is_played(plane):
    await make_node(plane, status={"nodeInfo": {"osImage": "simulated"}})
    await make_pod(plane)
    await plane.settled(3500)
    assert "labels" not in (await plane.client.get(NODES, "", "n"))["metadata"]
    await plane.settled(200)
    node = await plane.client.get(NODES, "", "n")
    assert node["metadata"]["labels"] == {"tired": "very"}
    assert await phase(plane) == "Pending"
    assert (await plane.client.list(LEASES, "kube-node-lease")).items == []


REFUSED = stage(
    "refused", "ConfigMap", {"matchLabels": {"turn": "yes"}},
    [{"patch": {"template": "data: {a: b}"}}], api_group="v1",
)  # fmt: skip


def retries(plane):
    wanted = 'workqueue_retries_total{name="stage-controller"} '
    lines = (line for line in plane.metrics.render().splitlines() if line.startswith(wanted))
    return next((float(line.removeprefix(wanted)) for line in lines), 0)


@played(REFUSED)
async def test_a_step_that_is_refused_is_tried_less_and_less_often(plane):
    meta = {"name": "m", "namespace": "default", "labels": {"turn": "yes"}}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "immutable": True}
    await plane.client.create(CONFIG_MAPS, made)
    counts = []
    for seconds in (10, 50, 600):
        await plane.settled(seconds)
        counts.append(retries(plane))
    # 5 ms, twice as long each time, a minute at most.
    assert 8 <= counts[0] <= 13
    assert counts[1] <= counts[0] + 4
    assert counts[1] + 8 <= counts[2] <= counts[1] + 14
    await plane.client.delete(CONFIG_MAPS, "default", "m")
    await plane.settled(120)
    assert retries(plane) <= counts[2] + 1
