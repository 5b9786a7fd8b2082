"""Root CA publisher: the ConfigMap kube-root-ca.crt in every active namespace.

Job: make it where it is missing, and put it right where somebody changed it.
Invariant: its data is exactly the cluster's CA bundle.
"""

from collections.abc import Iterable

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import Obj, annotations_of, copy_of, is_deleted, name_of, namespace_of
from sampan.api.resources import CONFIG_MAPS, NAMESPACES
from sampan.controllers.actions import NOTHING, Create, Plan, Update
from sampan.controllers.controller import Caches, Controller, View, own_key

NAME = "kube-root-ca.crt"
DESCRIPTION = "kubernetes.io/description"
ABOUT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


def root_ca_controller(bundle: str) -> Controller:
    async def planned(view: View, key: str) -> Plan:
        namespace = view.cache(NAMESPACES).get(key)
        if namespace is None:
            return NOTHING
        return plan(namespace, view.cache(CONFIG_MAPS).get(f"{key}/{NAME}"), bundle)

    return Controller(
        name="root-ca-certificate-publisher-controller",
        component="root-ca-cert-publisher",
        aliases=("root-ca-cert-publisher",),
        wakes={NAMESPACES: own_key, CONFIG_MAPS: _living_namespace},
        planned=planned,
        workers=1,
    )


def plan(namespace: Obj, config_map: Obj | None, bundle: str) -> Plan:
    if is_deleted(namespace):
        return NOTHING
    data = {"ca.crt": bundle}
    if config_map is None:
        wanted = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": NAME,
                "namespace": name_of(namespace),
                "annotations": {DESCRIPTION: ABOUT},
            },
            "data": data,
        }
        return Plan([Create(CONFIG_MAPS, wanted, settled=(AlreadyExists, NotFound))])
    if config_map.get("data") == data and annotations_of(config_map).get(DESCRIPTION):
        return NOTHING
    restored = copy_of(config_map)
    restored["data"] = data
    restored["metadata"]["annotations"] = {**annotations_of(config_map), DESCRIPTION: ABOUT}
    return Plan([Update(CONFIG_MAPS, restored)])


def _living_namespace(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    obj = new if new is not None else old
    return (namespace_of(obj),) if obj is not None and name_of(obj) == NAME else ()
