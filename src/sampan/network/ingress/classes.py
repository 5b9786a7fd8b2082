"""The IngressClass of this controller, and the Ingresses of that class.

Job: the class as an object; an Ingress and the classes → whether it is ours. Pure.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, annotations_of, name_of

NAME, CONTROLLER = "sampan", "sampan.dev/ingress"
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
OLD_CLASS = "kubernetes.io/ingress.class"


def ingress_class(others: Iterable[Obj]) -> Obj:
    """The default one, unless another is."""
    taken = any(annotations_of(other).get(DEFAULT_CLASS) == "true" for other in others)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": NAME, **({} if taken else {"annotations": {DEFAULT_CLASS: "true"}})},
        "spec": {"controller": CONTROLLER},
    }


def our_classes(classes: Iterable[Obj]) -> frozenset[str]:
    return frozenset(
        name_of(each)
        for each in classes
        if (each.get("spec") or {}).get("controller") == CONTROLLER
    )


def is_ours(ingress: Obj, ours: frozenset[str]) -> bool:
    """By its class; without one by the annotation that was there before classes."""
    wanted = (ingress.get("spec") or {}).get("ingressClassName")
    return wanted in ours if wanted else annotations_of(ingress).get(OLD_CLASS) == NAME
