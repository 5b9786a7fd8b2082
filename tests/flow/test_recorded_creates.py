"""What an original API server answered to some six hundred creates, and what this one answers.

recorded/api_server_v1.35.8_creates.jsonl: one case a line: the manifest, sent as a strict dry-run
create, and code, warnings, and the object or the message with its causes. Uids, times, versions and
managed fields are left out, and what was allocated is `*`. The original served IPv4 only, from
10.96.0.0/16, with MutatingAdmissionPolicy on. Go's map order decides the order of some causes.
"""

import re
from pathlib import Path

import orjson
import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import by_kind
from sampan.api.schema.published import Schema
from sampan.apiserver.settings import ApiServerSettings
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.releases import MUTATING_POLICIES

RECORDED = Path(__file__).parent / "recorded" / "api_server_v1.35.8_creates.jsonl"
CASES = [orjson.loads(line) for line in RECORDED.read_bytes().splitlines()]
TOKEN = "kube-api-access-*"
TIME = re.compile(r"20\d\d-\d\d-\d\dT.*Z|X509SHA256=[0-9a-f]{64}")  # and fingerprints
UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
UNORDERED = (  # Go's map order decides
    "config_map.yaml: keys of dots",
    "pod.yaml: a bad label key and value",
    "quota.yaml: half a pod, and less than none",
)
RECORDED_MINORS = ("1.34", "1.36", "1.37")
OWN = ("uid", "creationTimestamp", "resourceVersion", "managedFields")


@pytest.fixture(scope="module")
def answers():
    with features.used(MUTATING_POLICIES):
        return answers_to(CASES)


def answers_to(cases):
    """Of every case, from one server: a dry run leaves nothing behind."""
    found = {}

    async def main():
        settings = ApiServerSettings(
            service_cidrs=("10.96.0.0/16",), mount_service_account_tokens=True
        )
        async with api_server(Schema.load(), settings=settings) as api:
            for case in cases:
                found[case["case"]] = await answer_to(api, case["manifest"])

    virtual_time.run(main())
    return found


async def answer_to(api, manifest):
    resource = by_kind(manifest["apiVersion"], manifest["kind"])
    assert resource is not None, manifest["kind"]
    namespace = (manifest.get("metadata") or {}).get("namespace") or "default"
    inner = f"/namespaces/{namespace}" if resource.namespaced else ""
    path = f"{resource.path}{inner}/{resource.plural}"
    reply = await api.post(f"{path}?dryRun=All&fieldValidation=Strict", manifest)
    obj = {} if reply.status == 404 else reply.obj  # what is not served is told in plain words
    return reply.status, obj, warnings_in(reply)


def warnings_in(reply):
    text = reply.headers.get("warning", "")
    found = [part.rstrip('", ') for part in text.split('299 - "')[1:]]
    # The original says nothing of an Ingress that no controller serves; we do.
    return [warning for warning in found if "nobody serves this Ingress" not in warning]


def masked(value, like):
    """As the recording: `*` where it has one, and times of its own."""
    if like == "*" or (like is not None and isinstance(like, str) and TIME.fullmatch(like)):
        return like
    if like == TOKEN and isinstance(value, str) and value.startswith(TOKEN[:-1]):
        return like
    if isinstance(value, dict) and isinstance(like, dict):
        if "generateName" in like and "name" not in like:
            value = {key: item for key, item in value.items() if key != "name"}
        return {key: masked(item, like.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(like, list) and len(value) == len(like):
        return [masked(*pair) for pair in zip(value, like, strict=True)]
    return value


def compared(case, status, obj, warnings):
    """(found, recorded), each with what can be compared."""
    obj = orjson.loads(UUID.sub(b"UID", orjson.dumps(obj)))
    found = {"code": status, "warnings": warnings}
    wanted = {"code": case["code"], "warnings": case.get("warnings", [])}
    if "object" in case and status < 300:
        for key in OWN:
            obj.get("metadata", {}).pop(key, None)
        found["object"], wanted["object"] = masked(obj, case["object"]), case["object"]
        return found, wanted
    causes = (obj.get("details") or {}).get("causes") or ()
    found["causes"] = sorted([c["reason"], c["field"], c["message"]] for c in causes)
    wanted["causes"] = sorted(case.get("causes") or ())
    if case["case"] not in UNORDERED and status != 404:
        found["message"], wanted["message"] = obj.get("message"), case.get("message")
    return found, wanted


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_create_is_answered_as_the_original_answered_it(answers, case):
    """[A4]"""
    found, wanted = compared(case, *answers[case["case"]])
    assert found == wanted


def cases_of(minor):
    """Those of v1.35, but for what the other version answers otherwise."""
    others = RECORDED.with_name(f"creates_v{minor}.jsonl").read_bytes().splitlines()
    changed = {case["case"]: case for case in map(orjson.loads, others)}
    return [changed.get(case["case"], case) for case in CASES]


@pytest.mark.slow
@pytest.mark.parametrize("minor", RECORDED_MINORS)
def test_another_version_answers_as_its_original_did(minor):
    """[A4] [V1] recorded/creates_v1.37.jsonl: what an original v1.37.0 answered otherwise than
    v1.35.8; likewise v1.34.11 and v1.36.4."""
    cases = cases_of(minor)
    with features.used(Release(minor)):
        answered = answers_to(cases)
    differ = {}
    for case in cases:
        found, wanted = compared(case, *answered[case["case"]])
        if found != wanted:
            differ[case["case"]] = {
                key: (found.get(key), wanted.get(key))
                for key in wanted
                if found.get(key) != wanted.get(key)
            }
    assert differ == {}
