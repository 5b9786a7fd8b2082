"""What webhooks answer, and what an original v1.35 made of it: the same server answers to ours.

recorded/webhook_answers.jsonl.gz: one case a line: what the webhook answers (status, headers, body;
`$uid` is the request's), its kind, version and failure policy, and what a client got that created a
ConfigMap.
"""

import asyncio
import base64
import gzip
import json
import re
from pathlib import Path

import pytest

from sampan.api.schema.published import Schema
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.tls import server_context
from tests.support.generators.api_requests import api_server
from tests.support.parts.certificates import Authority

pytestmark = pytest.mark.kubernetes("1.35")  # which was asked

RECORDED = Path(__file__).parent / "recorded" / "webhook_answers.jsonl.gz"
CASES = {
    case["name"]: case
    for case in map(json.loads, gzip.decompress(RECORDED.read_bytes()).splitlines())
}
HOOKS = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/crdgold/configmaps"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SCHEME = re.compile(r' in scheme \\"[^"]*\\"')  # the original names a line of its own source
REDIRECT = "a redirect is never followed: it would carry the request's content elsewhere"
OTHER_KIND = "what a patch makes is read as the kind that was asked about, whatever it says it is"
KEPT = {
    **dict.fromkeys(("code-307-mutating", "code-307-validating"), REDIRECT),
    **dict.fromkeys(("code-308-mutating", "code-308-validating"), REDIRECT),
    **dict.fromkeys(("uid-number-mutating", "uid-number-validating"), "uid is a text like others"),
    "ops-13-mutating": OTHER_KIND,
    "ops-15-mutating": OTHER_KIND,
    **dict.fromkeys(("denied-18-mutating", "denied-18-validating"), "no version of a Status"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Of every case, from one server with all hooks: a dry run leaves nothing behind."""
    authority = Authority(tmp_path_factory.mktemp("ca"))
    return asyncio.run(_answers(authority))


async def _answers(authority):
    async def handle(request):
        uid = json.loads(request.body)["request"]["uid"]
        case = CASES[request.path.strip("/")]
        answer = case["answer"]
        text = answer["body"] if set(answer) == {"body"} else json.dumps(answer)
        body = b"" if case["status"] == 204 else text.replace("$uid", uid).encode()
        headers = [("content-type", "application/json"), *case["headers"].items()]
        return Response(case["status"], headers, body)

    pair = authority.issue("hook")
    server = Server(handle, ssl_context=server_context(pair.cert_path, pair.key_path))
    port = await server.start("127.0.0.1", 0)
    try:
        async with api_server(Schema.load(), clock=SystemClock()) as api:
            await api.made("/api/v1/namespaces", {"metadata": {"name": "crdgold"}})
            for kind in ("mutating", "validating"):
                hooks = [
                    _hook(authority, port, number, case)
                    for number, case in enumerate(CASES.values())
                    if case["kind"] == kind
                ]
                named = {"metadata": {"name": "recorded"}, "webhooks": hooks}
                await api.made(f"{HOOKS}/{kind}webhookconfigurations", named)
            return {name: await _answer(api, port, number) for number, name in enumerate(CASES)}
    finally:
        await server.stop(0.1)


def _hook(authority, port, number, case):
    rule = {
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }  # fmt: skip
    bundle = base64.b64encode(authority.ca_path.read_bytes()).decode()
    return {
        "name": f"c{number}.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}//{case['name']}", "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": [case["version"]],
        "failurePolicy": case["policy"],
        "objectSelector": {"matchLabels": {"case": f"c{number}"}},
    }


async def _answer(api, port, number):
    labels = {"case": f"c{number}"}
    body = {"metadata": {"name": "x", "labels": labels}, "data": {"a": "b"}}
    reply = await api.post(f"{CONFIG_MAPS}?dryRun=All", body)
    obj = reply.obj
    if reply.status == 201:
        meta = {key: obj["metadata"][key] for key in _SHOWN if key in obj["metadata"]}
        fields = {key: obj[key] for key in ("data", "binaryData") if key in obj}
        obj = {**fields, "metadata": meta}
    text = json.dumps(obj).replace(f"c{number}.example.com", "hook.example.com")
    text = text.replace(f"127.0.0.1:{port}", "HOST:PORT")
    warnings = [part.rstrip(", ") for part in _warnings(reply)]
    return {"code": reply.status, "body": json.loads(_UID.sub("UID", text)), "warnings": warnings}


_SHOWN = ("annotations", "finalizers")


def _warnings(reply):
    text = reply.headers.get("warning", "")
    return [f"299 - {part}" for part in text.split("299 - ")[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_taken_as_the_original_takes_it(answers, name):
    case, found = CASES[name], answers[name]
    wanted = {key: case[key] for key in ("code", "body", "warnings")}
    wanted["warnings"] = [text.encode("latin-1").decode() for text in case["warnings"]]
    wanted["body"] = json.loads(_SCHEME.sub("", json.dumps(wanted["body"])))
    if name in KEPT:
        assert found != wanted, "a kept difference is gone"
    else:
        assert found == wanted
