"""Records what an original API server of another version answers to the recorded creates.

    python -m tests.support.recording.creates KUBECONFIG 1.37

writes tests/flow/recorded/creates_v1.37.jsonl: the cases that v1.35.8 answers otherwise.
The original serves IPv4 only, from 10.96.0.0/16, and has its default gates.
"""

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tests.support.recording.original import Original

RECORDED = Path(__file__).parents[2] / "flow" / "recorded"
BASE = RECORDED / "api_server_v1.35.8_creates.jsonl"
_OWN = ("uid", "creationTimestamp", "resourceVersion", "managedFields")
_CHANCE = {
    "lastTransitionTime", "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "eventTime",
}  # fmt: skip
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT.*Z|X509SHA256=[0-9a-f]{64}")
# Of v1.35 it was recorded in its beta version; later ones have it in v1, earlier ones not at all.
POLICIES = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")


def main(kubeconfig: str, minor: str) -> None:
    original = Original(kubeconfig)
    wait_for_account(original, "default")
    found = list(_answers(original))
    path = RECORDED / f"creates_v{minor}.jsonl"
    path.write_bytes(
        b"".join(orjson.dumps(row, option=orjson.OPT_SORT_KEYS) + b"\n" for row in found)
    )
    print(f"{path}: {len(found)} cases are answered otherwise")


def wait_for_account(original: Original, namespace: str) -> None:
    """What the controllers bring to a namespace; pods are refused before."""
    for brought in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        while original.ask("GET", f"/api/v1/namespaces/{namespace}/{brought}")[0] != 200:
            time.sleep(0.1)


def _answers(original: Original) -> Iterator[dict[str, Any]]:
    for line in BASE.read_bytes().splitlines():
        case = orjson.loads(line)
        manifest = case["manifest"]
        if manifest["kind"] in POLICIES:
            manifest = {**manifest, "apiVersion": "admissionregistration.k8s.io/v1"}
        if not original.serves(manifest):
            yield {"case": case["case"], "manifest": manifest, "code": 404}
            continue
        code, answer, warnings = original.create(manifest)
        answer = orjson.loads(_UUID.sub(b"UID", orjson.dumps(answer)))
        row = {"case": case["case"], "code": code, "manifest": manifest, "warnings": warnings}
        if code < 300:
            row["object"] = _masked(answer, case.get("object"))
        else:
            causes = (answer.get("details") or {}).get("causes") or ()
            row["causes"] = [[c.get("reason"), c.get("field"), c.get("message")] for c in causes]
            row["message"] = answer.get("message")
        if _comparable(row) != _comparable(case):
            yield row


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "causes": sorted(row.get("causes") or ())}


def _masked(obj: dict[str, Any], like: Any) -> dict[str, Any]:
    meta = obj.get("metadata") or {}
    for key in _OWN:
        meta.pop(key, None)
    if meta.get("generateName"):
        meta.pop("name", None)
    masked: dict[str, Any] = _mask(obj, like)
    return masked


def _mask(value: Any, like: Any) -> Any:
    if isinstance(value, str) and isinstance(like, str) and _TIME.fullmatch(value):
        return like if _TIME.fullmatch(like) else value
    if isinstance(value, str) and re.fullmatch(r"kube-api-access-\w{5}", value):
        return "kube-api-access-*"
    if isinstance(value, list):
        others = like if isinstance(like, list) and len(like) == len(value) else [None] * len(value)
        return [_mask(item, other) for item, other in zip(value, others, strict=True)]
    if isinstance(value, dict):
        known = like if isinstance(like, dict) else {}
        return {
            key: "*" if key in _CHANCE else _mask(item, known.get(key))
            for key, item in value.items()
        }
    return value


if __name__ == "__main__":
    main(*sys.argv[1:])
