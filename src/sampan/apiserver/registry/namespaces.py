"""Namespaces: their strategy.

Job: phase and finalizer at creation, the first step of their deletion. Pure.
Invariant: a namespace leaves the store only when both its lists of finalizers are empty.
"""

from sampan.api.objects import Obj, meta_of, name_of, time_text
from sampan.api.resources import CONFIG_MAPS, SERVICE_ACCOUNTS, Resource
from sampan.apiserver.registry.strategy import Strategy, path_getter

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"
ROOT_CA = "kube-root-ca.crt"
ROOT_CA_TEXT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


def prepare_create(namespace: Obj) -> None:
    namespace["status"] = {"phase": "Active"}
    spec = namespace.setdefault("spec", {})
    finalizers = spec.setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    _label(namespace)


def prepare_update(new: Obj, old: Obj) -> None:
    """spec.finalizers are nobody's to change but by the `finalize` subresource: neither those that
    are there nor, once they are gone, others."""
    new["spec"] = old.get("spec") or {}
    new["status"] = old.get("status") or {}
    _label(new)


def finalize(new: Obj, old: Obj) -> None:
    """The `finalize` subresource."""
    new["status"] = old.get("status") or {}
    _label(new)


def terminating(namespace: Obj, now: float) -> Obj | None:
    """The namespace as its first deletion leaves it; None where that has happened already."""
    meta = meta_of(namespace)
    if meta.get("deletionTimestamp"):
        return None
    status = {**(namespace.get("status") or {}), "phase": "Terminating"}
    return {
        **namespace,
        "metadata": {**meta, "deletionTimestamp": time_text(now)},
        "status": status,
    }


def vanishes(namespace: Obj) -> bool:
    meta = meta_of(namespace)
    return (
        bool(meta.get("deletionTimestamp"))
        and not meta.get("finalizers")
        and not (namespace.get("spec") or {}).get("finalizers")
    )


def contents(name: str, ca_bundle: str) -> list[tuple[Resource, Obj]]:
    """What every namespace has from its first moment."""
    account: Obj = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": name},
    }
    bundle: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": ROOT_CA,
            "namespace": name,
            "annotations": {"kubernetes.io/description": ROOT_CA_TEXT},
        },
        "data": {"ca.crt": ca_bundle},
    }
    return [(SERVICE_ACCOUNTS, account), (CONFIG_MAPS, bundle)]


def _label(namespace: Obj) -> None:
    meta = namespace["metadata"]
    if meta.get("name"):  # a generated name is not there yet; it is labelled when it is
        meta["labels"] = {**(meta.get("labels") or {}), NAME_LABEL: name_of(namespace)}


def strategy(ca_bundle: str) -> Strategy:
    return Strategy(
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        keeps_status_on_create=True,
        fields={
            "status.phase": path_getter("status", "phase"),
        },
        terminating=terminating,
        vanishes=vanishes,
        contents=lambda namespace: contents(name_of(namespace), ca_bundle),
        returns_deleted=True,
    )
