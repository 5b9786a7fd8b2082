"""What the API gives out of traces [X1]: to whom, of what, and nothing where it is off."""

import asyncio
import io

import pytest

from sampan.api.resources import PODS
from sampan.api.rules.journey import journey_of
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.telemetry.traces import DETAILED_PER_SECOND, Traces
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server, pod
from tests.support.virtual_time import LoopClock
from tests.support.worlds.control_plane import published_schema

ALL = "/api/v1/namespaces/default/pods"
SPANS = "/sampan/v1/spans"
REQUESTS = "/sampan/v1/trace/requests"
ALL_TRACES = "/sampan/v1/trace/pods/default"
TRACE = "/sampan/v1/trace/pods/default/web"
MUTATING = [
    "NamespaceLifecycle", "ServiceAccount", "Priority", "DefaultTolerationSeconds", "RuntimeClass",
    "PodTopologyLabels",
]  # fmt: skip
VALIDATING = ["NodeRestriction", "PodSecurity", "Priority", "RuntimeClass"]


def request_steps(mutating, validating):
    return [
        "authentication", "authorization", "decoding", "defaulting", *mutating,
        "mutating admission", "validation", *validating, "validating admission", "store commit",
        "response",
    ]  # fmt: skip


REQUEST_STEPS = request_steps(MUTATING, VALIDATING)


def traced_server():
    clock = LoopClock()
    return api_server(published_schema(), clock=clock, metrics=Metrics(Traces(clock)))


def test_a_create_has_every_step_of_the_chain_in_its_order():
    async def scenario():
        async with traced_server() as api:
            created = await api.made(ALL, pod("web"))
            [trace] = (await api.get(TRACE)).obj["traces"]
            assert trace["uid"] == created["metadata"]["uid"]
            [whole, *steps] = trace["spans"]
            assert whole["name"] == "create pods"
            facts = whole["facts"]
            assert (facts["user"], facts["phase"]) == ("admin", "Pending")
            assert [step["name"] for step in steps] == REQUEST_STEPS
            assert {step["parent"] for step in steps} == {0}

    virtual_time.run(scenario())


def test_a_flood_of_requests_is_not_seen_plugin_by_plugin_and_the_next_second_is():
    async def scenario():
        clock = LoopClock()
        metrics = Metrics(Traces(clock))
        async with api_server(published_schema(), clock=clock, metrics=metrics) as api:

            async def steps_of_create(name):
                await api.made(ALL, pod(name))
                [trace] = (await api.get(f"{ALL_TRACES}/{name}")).obj["traces"]
                return [span["name"] for span in trace["spans"]][1:]

            for _ in range(DETAILED_PER_SECOND):
                metrics.traces.marks()
            assert await steps_of_create("late") == request_steps([], [])
            await clock.sleep(1.1)
            assert await steps_of_create("next") == REQUEST_STEPS

    virtual_time.run(scenario())


def test_reads_dry_runs_and_refused_writes_leave_no_trace():
    async def scenario():
        async with traced_server() as api:
            assert (await api.post(f"{ALL}?dryRun=All", pod("web"))).status == 201
            assert (await api.post(ALL, pod("web", containers=[]))).status == 422
            assert (await api.get(TRACE)).status == 404
            await api.made(ALL, pod("web"))
            await api.get(f"{ALL}/web")
            [trace] = (await api.get(TRACE)).obj["traces"]
            assert [span["name"] for span in trace["spans"] if span["parent"] < 0] == [
                "create pods"
            ]

    virtual_time.run(scenario())


def test_the_trace_of_an_object_is_for_who_may_get_the_object():
    async def scenario():
        async with traced_server() as api:
            await api.made(ALL, pod("web"))
            denied = await api.send("GET", TRACE, user="eve", group="nobody")
            assert denied.status == 403
            assert 'cannot get resource "pods"' in denied.message
            rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
            roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
            await api.made(f"{roles}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
            binding = {
                "metadata": {"name": "b"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "eve"}],
            }
            await api.made(f"{roles}/rolebindings", binding)
            assert (await api.send("GET", TRACE, user="eve", group="nobody")).status == 200
            assert (await api.send("POST", TRACE, {})).status in (404, 405)
            assert (await api.get("/sampan/v1/trace/pods")).status == 404
            listed = await api.send("GET", ALL_TRACES, user="eve", group="nobody")
            assert listed.status == 403  # that would be a list
            [found] = (await api.get(ALL_TRACES)).obj["objects"]
            assert found["name"] == "web"

    virtual_time.run(scenario())


def test_a_name_that_comes_again_has_a_trace_of_its_own_and_the_old_one_stays():
    async def scenario():
        async with traced_server() as api:
            first = await api.made(ALL, pod("web"))
            await api.delete(f"{ALL}/web?gracePeriodSeconds=0")
            second = await api.made(ALL, pod("web"))
            found = (await api.get(TRACE)).obj["traces"]
            assert [trace["uid"] for trace in found] == [
                second["metadata"]["uid"],
                first["metadata"]["uid"],
            ]
            assert [span["name"] for span in found[1]["spans"] if span["parent"] < 0] == [
                "create pods",
                "delete pods",
            ]

    virtual_time.run(scenario())


def test_a_trace_goes_on_under_what_a_trusted_caller_began_and_under_nobody_else_s():
    async def scenario():
        async with traced_server() as api:
            context = {"traceparent": f"00-{'f' * 32}-{'e' * 16}-01"}
            assert (await api.send("POST", ALL, pod("web"), headers=context)).status == 201
            [trace] = (await api.get(TRACE)).obj["traces"]
            assert trace["traceId"] == "f" * 32
            assert trace["spans"][0]["facts"]["parent span id"] == "e" * 16
            rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}
            roles = "/apis/rbac.authorization.k8s.io/v1"
            await api.made(f"{roles}/clusterroles", {"metadata": {"name": "r"}, "rules": [rule]})
            binding = {
                "metadata": {"name": "b"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": "r"},
                "subjects": [{"kind": "User", "name": "eve"}],
            }  # fmt: skip
            await api.made(f"{roles}/clusterrolebindings", binding)
            made = await api.send("POST", ALL, pod("other"), user="eve", group="x", headers=context)
            [trace] = (await api.get(TRACE.replace("web", "other"))).obj["traces"]
            assert trace["traceId"] == made.obj["metadata"]["uid"].replace("-", "")

    virtual_time.run(scenario())


def test_a_request_is_found_by_the_id_that_its_answer_carries():
    async def scenario():
        async with traced_server() as api:
            made = await api.post(ALL, pod("web"))
            found = (await api.get(f"{REQUESTS}/{made.headers['audit-id']}")).obj
            assert (found["resource"], found["name"]) == ("pods", "web")
            [trace] = found["traces"]
            assert [span["name"] for span in trace["spans"]] == ["create pods", *REQUEST_STEPS]
            chosen = {"audit-id": "mine"}
            assert (await api.send("DELETE", f"{ALL}/web", headers=chosen)).headers["audit-id"] == (
                "mine"
            )
            [trace] = (await api.get(f"{REQUESTS}/mine")).obj["traces"]
            assert trace["spans"][0]["name"] == "delete pods"
            told = [span["name"] for span in trace["spans"]][-3:]
            assert told == ["admission", "store commit", "response"]
            # Who chooses the id of another's request does not take its place.
            for body, status in ((pod("other"), 201), ({"kind": "Pod"}, 422)):
                assert (await api.send("POST", ALL, body, headers=chosen)).status == status
            [again] = (await api.get(f"{REQUESTS}/mine")).obj["traces"]
            assert again == trace
            # Reads have an id, too, and no trace.
            read = await api.get(ALL)
            assert (await api.get(f"{REQUESTS}/{read.headers['audit-id']}")).status == 404
            eve = await api.send("GET", f"{REQUESTS}/mine", user="eve", group="nobody")
            assert eve.status == 403

    virtual_time.run(scenario())


def test_a_refused_request_says_where_it_stopped():
    async def scenario():
        async with traced_server() as api:
            refused = await api.post(ALL, pod("web", containers=[]))
            assert refused.status == 422
            [trace] = (await api.get(f"{REQUESTS}/{refused.headers['audit-id']}")).obj["traces"]
            [whole, *steps] = trace["spans"]
            assert "spec.containers: Required value" in whole["facts"]["error"]
            assert [step["name"] for step in steps][-2:] == ["mutating admission", "refused"]

    virtual_time.run(scenario())


def test_a_ring_that_overflowed_says_so():
    async def scenario():
        clock = LoopClock()
        metrics = Metrics(Traces(clock, most=2))
        async with api_server(published_schema(), clock=clock, metrics=metrics) as api:
            for name in ("web", "b", "c", "d"):
                await api.made(ALL, pod(name))
            assert (await api.get(TRACE)).status == 404
            assert "older traces have made room for newer ones" in (await api.get(TRACE)).message

    virtual_time.run(scenario())


def told(uid, **more):
    return {"uid": uid, "lane": "kubelet", "name": "sync pod", "began": 1.0, "ended": 2.0,
            "facts": {}, **more}  # fmt: skip


def test_a_node_in_another_process_tells_of_its_own_pods_only():
    async def scenario():
        async with traced_server() as api:
            created = await api.made(ALL, pod("web", nodeName="n1"))
            uid = created["metadata"]["uid"]
            spans = {"spans": [told(uid), told("nobody's")]}
            for user, group, taken in (
                ("system:node:n2", "system:nodes", 0),
                ("system:node:n1", "system:nodes", 1),
                ("system:kube-scheduler", "", 1),
                ("eve", "people", 0),
            ):
                reply = await api.send("POST", SPANS, spans, user=user, group=group)
                assert (user, reply.obj) == (user, {"taken": taken})
            [trace] = (await api.get(TRACE)).obj["traces"]
            assert [span["name"] for span in trace["spans"]].count("sync pod") == 2

    virtual_time.run(scenario())


@pytest.mark.parametrize(
    "odd",
    [
        {"began": 3.0}, {"began": "now"}, {"ended": None}, {"lane": 7}, {"name": "x" * 300},
        {"facts": []}, {"facts": {str(number): "" for number in range(99)}}, {"uid": 5},
    ],
)  # fmt: skip
def test_what_is_no_span_is_not_taken(odd):
    async def scenario():
        async with traced_server() as api:
            uid = (await api.made(ALL, pod("web")))["metadata"]["uid"]
            reply = await api.send("POST", SPANS, {"spans": [told(uid) | odd, "no", None]})
            assert reply.obj == {"taken": 0}
            for body in ([], {"spans": {}}, {}):
                assert (await api.send("POST", SPANS, body)).obj == {"taken": 0}

    virtual_time.run(scenario())


@pytest.mark.slow
def test_every_part_tells_its_steps_and_they_add_up(tmp_path):
    async def scenario():
        data, clock = open_data_dir(str(tmp_path)), SystemClock()
        settings = UpSettings(data_dir=str(tmp_path), port=0, runtime="simulated", nodes=1)
        cluster = AllInOne(settings, data, Progress(io.StringIO(), clock), clock)
        await cluster.start()
        connection = kubeconfig.load(str(data.kubeconfig), {}, "").connection()
        client = rest.connect(connection, clock=clock)
        try:
            await client.create(
                PODS, {**pod("web"), "metadata": {"name": "web", "namespace": "default"}}
            )
            async with asyncio.timeout(30):
                while True:
                    [trace] = (await client.get_path(TRACE))["traces"]
                    journey = journey_of(trace)
                    if journey is not None and journey.reached == "Running":
                        break
                    await asyncio.sleep(0.02)
        finally:
            await client.close()
            await cluster.stop()
        told, spans = {(step.lane, step.name) for step in journey.steps}, trace["spans"]
        assert told >= {
            ("apiserver", "create pods"), ("apiserver", "create pods/binding"),
            ("apiserver", "patch pods/status"), ("scheduler", "queue"),
            ("scheduler", "filter and score"), ("scheduler", "bind"),
            ("kubelet", "pod worker starts"), ("kubelet", "sync pod"),
            ("kubelet", "sandbox and network"), ("kubelet", "image of main"),
            ("kubelet", "create main"), ("kubelet", "start main"),
        }  # fmt: skip
        # What parts of the process ask for has its steps, too.
        at = next(at for at, span in enumerate(spans) if span["name"] == "create pods/binding")
        parts = {span["name"] for span in spans if span["parent"] == at}
        assert parts >= {"authorization", "store commit", "response"}
        assert sum(step.seconds for step in journey.critical) == pytest.approx(journey.seconds)

    asyncio.run(scenario())
