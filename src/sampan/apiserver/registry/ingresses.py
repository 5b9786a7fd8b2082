"""Ingresses: their strategy.

Job: say so to whoever writes one. A controller shows itself by its IngressClass.
"""

from collections.abc import Callable, Sequence

from sampan.api.objects import Obj, annotations_of, name_of
from sampan.apiserver.registry.strategy import Strategy

_OLD_CLASS = "kubernetes.io/ingress.class"  # controllers that go by it may have no class
NO_CLASS = (
    "spec.ingressClassName: not set, and no IngressClass is the default: nobody serves this "
    "Ingress (`sampan up --ingress` would, or a controller of yours)"
)


def strategy(classes: Callable[[], Sequence[Obj]]) -> Strategy:
    """`classes`: the IngressClasses that there are."""

    def warn(new: Obj, old: Obj | None) -> Sequence[str]:
        wanted = _class_of(new)
        if _OLD_CLASS in annotations_of(new) or (old is not None and _class_of(old) == wanted):
            return ()
        if not wanted:
            return (NO_CLASS,)
        if any(name_of(found) == wanted for found in classes()):
            return ()
        return (
            f'spec.ingressClassName: there is no IngressClass "{wanted}": nobody serves this '
            "Ingress until a controller brings it",
        )

    return Strategy(warn=warn)


def _class_of(ingress: Obj) -> str:
    return str((ingress.get("spec") or {}).get("ingressClassName") or "")
