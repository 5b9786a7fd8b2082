"""Good objects to begin with: one or more of every kind that is created.

Job: (apiVersion, kind) → manifests that an original has taken, of the recorded creates and of what
    they lack.
"""

from functools import cache
from pathlib import Path

import orjson

from sampan.api.objects import Obj

_RECORDED = Path(__file__).parents[2] / "flow" / "recorded" / "api_server_v1.35.8_creates.jsonl"
Kind = tuple[str, str]
_RBAC = "rbac.authorization.k8s.io"
_LACKING: tuple[Obj, ...] = (
    {
        "apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "a"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": _RBAC}],
        "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": _RBAC},
    },
    {
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass",
        "metadata": {"name": "a"}, "driverName": "csi.example.org", "parameters": {"iops": "5"},
    },
)  # fmt: skip


@cache
def seeds() -> dict[Kind, list[Obj]]:
    found: dict[Kind, list[Obj]] = {}
    for line in _RECORDED.read_bytes().splitlines():
        case = orjson.loads(line)
        manifest = case["manifest"]
        if case["code"] == 201:
            found.setdefault((manifest["apiVersion"], manifest["kind"]), []).append(manifest)
    for manifest in _LACKING:
        found.setdefault((manifest["apiVersion"], manifest["kind"]), []).append(manifest)
    return found
