"""DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or not reachable.

Job: add the two tolerations unless the pod says something about these taints itself.
"""

from sampan.api.objects import Obj
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def plugin(initializer: PluginInitializer) -> Steps:
    settings = initializer.settings
    seconds = {NOT_READY: settings.not_ready_seconds, UNREACHABLE: settings.unreachable_seconds}
    first, second = (_toleration(taint, seconds[taint]) for taint in seconds)

    def mutate(attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        spec = attributes.obj.setdefault("spec", {})
        tolerations: list[Obj] | None = spec.get("tolerations")
        if not tolerations:
            spec["tolerations"] = [first.copy(), second.copy()]
            return
        covered = _covers(tolerations)
        if "" in covered or covered.issuperset(seconds):
            return
        missing = [_toleration(key, seconds[key]) for key in seconds if key not in covered]
        spec["tolerations"] = [*tolerations, *missing]

    return Steps(mutate)


def _covers(tolerations: list[Obj]) -> set[str]:
    """The taints that the pod says something about; "" stands for all of them."""
    return {
        toleration.get("key") or ""
        for toleration in tolerations
        if (toleration.get("effect") or "NoExecute") == "NoExecute"
    }


def _toleration(taint: str, seconds: int) -> Obj:
    return {
        "key": taint,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": seconds,
    }
