"""Requests made from the server's own OpenAPI documents: no 5xx, no hang, every error a Status
[A4, A5, A7].

`make fuzz-api REQUESTS=20000 SEED=1` runs longer; a failure is shown as small as Hypothesis can
make it.
"""

import asyncio
import os
from collections import Counter
from pathlib import Path

import orjson
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings

from sampan.api.resources import by_kind
from sampan.api.schema.published import Schema
from sampan.core.http.messages import Stream
from tests.support.generators.api_requests import AS_UPSTREAM, api_server, client_certificate
from tests.support.generators.openapi_requests import operations, requests
from tests.support.seed import SEED
from tests.support.worlds.lent_objects import spoilt_objects

pytestmark = pytest.mark.slow

REQUESTS = int(os.environ.get("SAMPAN_REQUESTS", "400"))
WRITES = ("POST", "PUT", "PATCH")
SECONDS_EACH = 20.0  # a hang, not a slow answer: the machine may be busy
ALLOWED = {501, 503}  # what is not there in this server, and says so
CORPUS = Path(__file__).parents[1] / "unit" / "api" / "corpus"


async def populated(api):
    """One good object of every kind, named as most requests ask for."""
    for file in sorted(CORPUS.glob("*.yaml")):
        made = yaml.safe_load(file.read_text())["base"]
        if "Webhook" in made["kind"]:
            continue  # stored, these would send later requests out into the world
        resource = by_kind(made["apiVersion"], made["kind"])
        root = f"/apis/{resource.group}" if resource.group else "/api"
        inside = "/namespaces/default" if resource.namespaced else ""
        made.setdefault("metadata", {})["name"] = "a"
        made["metadata"].pop("namespace", None)
        await api.post(f"{root}/{resource.version}{inside}/{resource.plural}", made)


async def documents(api):
    index = (await api.get("/openapi/v3")).obj["paths"]
    return [(await api.get(one["serverRelativeURL"])).obj for one in index.values()]


def check(reply):
    if isinstance(reply, Stream):
        assert reply.status == 200
        return
    if reply.status >= 500:
        as_upstream = any(text in reply.body for text in AS_UPSTREAM)
        assert reply.status in ALLOWED or as_upstream, reply
    plain = dict(reply.headers).get("content-type", "").startswith("text/plain")
    if reply.status >= 400 and not plain and not reply.body.startswith(b"k8s\x00"):
        found = orjson.loads(reply.body)
        assert found["kind"] == "Status"
        assert found["status"] == "Failure"
        assert found["code"] == reply.status
        assert found["message"] or found["reason"]


@pytest.mark.timeout(0)
def test_no_request_that_the_documents_describe_breaks_the_server():
    codes, writes = Counter(), Counter()
    with asyncio.Runner() as runner:
        context = api_server(Schema.load())
        api = runner.run(context.__aenter__())
        asked = operations(runner.run(documents(api)))
        assert len(asked) > 500
        asked = [one for one in asked if "webhookconfigurations" not in one.path]
        certificate = client_certificate("admin", "system:masters")

        async def answered(request):
            reply = await asyncio.wait_for(api.server.handle_http(request), SECONDS_EACH)
            if isinstance(reply, Stream):
                await reply.chunks.aclose()
            return reply

        @seed(SEED)
        @settings(
            max_examples=REQUESTS, deadline=None, database=None,
            phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(requests(asked, certificate))
        def ask(request):
            if codes.total() % 250 == 0:
                runner.run(populated(api))
            reply = runner.run(answered(request))
            codes[reply.status] += 1
            writes[request.method in WRITES and reply.status < 300] += 1
            check(reply)

        ask()
        spoilt = spoilt_objects(api.server)
        runner.run(context.__aexit__(None, None, None))
    print(f"seed {SEED}: {dict(sorted(codes.items()))}")
    assert spoilt == []
    # Noise alone proves little: some of it must have been good enough to be stored.
    assert codes[200] > REQUESTS / 50
    assert writes[True] > 0
