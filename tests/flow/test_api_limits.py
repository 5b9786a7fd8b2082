"""When there is too much, or an end: what the API server refuses, and how it stops."""

from sampan.api.schema.published import Schema
from sampan.apiserver.settings import ApiServerSettings
from sampan.testing import virtual_time
from sampan.testing.generators.api_requests import api_server

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
