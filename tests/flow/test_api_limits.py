"""When there is too much, or an end: what the API server refuses, and how it stops."""

import pytest

from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS
from sampan.apiserver.http.replies import bounded_warnings
from sampan.apiserver.settings import ApiServerSettings
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, request

PODS = "/api/v1/namespaces/default/pods"


def test_too_many_requests_are_told_to_come_back():
    """[A7] 429 as a Status, with Retry-After; administrators get through"""

    async def story():
        settings = ApiServerSettings(
            max_requests_in_flight=0, max_mutating_requests_in_flight=0, request_seats=0
        )
        async with api_server(Schema.load(), settings=settings) as api:
            refused = await api.send("GET", PODS, user="ann", group="dev")
            assert refused.status == 429
            assert refused.headers["retry-after"] == "1"
            assert refused.obj["reason"] == "TooManyRequests"
            assert refused.obj["details"]["retryAfterSeconds"] == 1
            assert (await api.get(PODS)).status == 200
            assert (await api.send("GET", "/readyz", user="ann", group="dev")).status == 200

    virtual_time.run(story())


def test_priority_and_fairness_is_asked_instead_of_the_counters_not_as_well():
    async def story():
        settings = ApiServerSettings(max_requests_in_flight=0, max_mutating_requests_in_flight=0)
        async with api_server(Schema.load(), settings=settings) as api:
            refused = await api.send("GET", PODS, user="ann", group="dev")
            assert refused.status == 403
            refused = await api.send("POST", PODS, {}, user="ann", group="dev")
            assert refused.status == 403

    virtual_time.run(story())


def test_component_statuses_say_what_can_be_known():
    """[A5]"""

    async def story():
        async with api_server(Schema.load()) as api:
            found = await api.get("/api/v1/componentstatuses")
            assert found.items == ["etcd-0"]
            assert "deprecated" in found.headers["warning"]
            one = await api.get("/api/v1/componentstatuses/etcd-0")
            assert one.obj["conditions"][0]["status"] == "True"
            assert (await api.get("/api/v1/componentstatuses/scheduler")).status == 404

    virtual_time.run(story())


def test_a_server_that_stops_is_not_ready_first_and_its_watches_end():
    """[A10] readyz fails while requests are still answered; then watches end cleanly"""

    async def story():
        async with api_server(Schema.load()) as api:
            watching = await api.watch(PODS)
            api.server.wind_down()
            ready = await api.get("/readyz?verbose")
            assert ready.status == 500
            assert b"[-]shutdown failed" in ready.body
            assert (await api.get("/livez")).status == 200
            assert (await api.get(PODS)).status == 200
            await api.server.stop()
            while await watching.next() is not None:
                pass

    virtual_time.run(story())


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_an_object_is_at_most_as_large_as_etcd_takes(method):
    """A request may have 3 MiB, an object 1.5: in upstream's words, which are etcd's."""

    async def story():
        async with api_server(Schema.load()) as api:
            path = "/api/v1/namespaces/default/pods"
            pod = {
                "metadata": {"name": "a", "annotations": {"small": "x"}},
                "spec": {"containers": [{"name": "a", "image": "i"}]},
            }
            pod = await api.made(path, pod)
            name = "b" if method == "POST" else "a"
            large = {"name": name, "finalizers": [f"example.com/{n}" for n in range(90_000)]}
            own = {} if method == "POST" else {"status": pod["status"]}
            whole = {"spec": pod["spec"], "metadata": large, **own}
            body = {"metadata": large} if method == "PATCH" else whole
            at = path if method == "POST" else f"{path}/a"
            headers = {"content-type": MERGE} if method == "PATCH" else {}
            got = await api.send(method, at, body, headers=headers)
            assert (got.status, got.message) == (500, "etcdserver: request is too large")
            assert (await api.get(f"{path}/a")).obj["metadata"]["annotations"] == {"small": "x"}

    virtual_time.run(story())


def test_warnings_do_not_fill_the_head_of_an_answer():
    """A client bounds the head: an answer with ten thousand warnings would be none."""

    async def story():
        async with api_server(Schema.load()) as api:
            pod = {
                "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "a", "image": "i"}]},
                **{f"unknown{number}": 1 for number in range(10_000)},
            }
            request_ = request("POST", PODS + "?dryRun=All", pod, "admin", MASTERS, {})
            reply = await api.server.handle_http(request_)
            warned = [value for name, value in reply.headers if name == "warning"]
            assert 10 < len(warned) < 200
            assert sum(map(len, warned)) < 8192

    virtual_time.run(story())
    assert bounded_warnings(["a", "b", "a"]) == ["a", "b"]
    assert [len(one) for one in bounded_warnings(["x" * 5000, "y"])] == [256, 1]


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("limit=" + "9" * 5000, None),
        ("timeoutSeconds=" + "9" * 5000, None),
        ("resourceVersion=" + "9" * 5000, None),
        ("labelSelector=a+gt+" + "9" * 5000, None),
        ("fieldSelector=spec.nodeName%3D" + "9" * 5000, None),
        ("continue=" + "9" * 5000, None),
        ("", {"resources": {"requests": {"cpu": "9" * 5000}}}),
        ("", {"resources": {"requests": {"cpu": "1." + "9" * 5000}}}),
        ("", {"resources": {"requests": {"cpu": "1e" + "9" * 5000}}}),
        ("", {"ports": [{"containerPort": "9" * 5000}]}),
        ("", {"livenessProbe": {"tcpSocket": {"port": "9" * 5000}}}),
    ],
)
def test_a_number_without_end_is_the_callers_mistake(query, body):
    """Python reads 4 300 digits and no more."""

    async def story():
        async with api_server(Schema.load()) as api:
            if body is None:
                got = await api.get(f"{PODS}?{query}")
            else:
                spec = {"containers": [{"name": "a", "image": "i", **body}]}
                got = await api.post(PODS, {"metadata": {"name": "a"}, "spec": spec})
            assert got.status < 500, got.message

    virtual_time.run(story())


def test_a_body_with_a_number_without_end_is_a_bad_request():
    async def story():
        async with api_server(Schema.load()) as api:
            digits = b"9" * 5000
            for media in ("application/json", "application/yaml"):
                for number in (digits, b"-" + digits, b"1." + digits, b"1e" + digits):
                    body = b'{"metadata": {"name": "a", "generation": %b}}' % number
                    got = await api.send("POST", PODS, body, headers={"content-type": media})
                    assert 400 <= got.status < 500, (media, number[:4], got.message)

    virtual_time.run(story())
