"""DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or not reachable.

Job: add the two tolerations unless the pod says something about these taints itself.
"""

from sampan.api.objects import Obj
from sampan.api.resources import PODS
from sampan.apiserver.admission.chain import CREATE, UPDATE, Attributes, Plugin

SECONDS = 300
TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit(attributes: Attributes) -> None:
    if attributes.obj is None or not attributes.is_main(PODS):
        return
    spec = attributes.obj.setdefault("spec", {})
    tolerations: list[Obj] = spec.get("tolerations") or []
    missing = [taint for taint in TAINTS if not any(_covers(one, taint) for one in tolerations)]
    if missing:
        spec["tolerations"] = [*tolerations, *map(_toleration, missing)]


def _covers(toleration: Obj, taint: str) -> bool:
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    return key in (taint, "") and effect in ("NoExecute", "")


def _toleration(taint: str) -> Obj:
    return {
        "key": taint,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": SECONDS,
    }


PLUGIN = Plugin("DefaultTolerationSeconds", frozenset({CREATE, UPDATE}), mutate=admit)
