"""ServiceAccount controller: `default` in every active namespace.

Job: make it where it is missing.
Invariant: a namespace that is being deleted gets none.
"""

from collections.abc import Iterable

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import Obj, is_deleted, name_of, namespace_of
from sampan.api.resources import NAMESPACES, SERVICE_ACCOUNTS
from sampan.controllers.actions import NOTHING, Create, Plan
from sampan.controllers.controller import Caches, Controller, View, own_key

NAME = "default"


def serviceaccount_controller() -> Controller:
    return Controller(
        name="serviceaccount-controller",
        component="serviceaccount-controller",
        aliases=("serviceaccount",),
        wakes={NAMESPACES: own_key, SERVICE_ACCOUNTS: _default_is_gone},
        planned=_plan_key,
        workers=1,
    )


def plan(namespace: Obj, account: Obj | None) -> Plan:
    if account is not None or is_deleted(namespace):
        return NOTHING
    wanted = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": name_of(namespace)},
    }
    # NotFound: the namespace went away meanwhile.
    return Plan([Create(SERVICE_ACCOUNTS, wanted, settled=(AlreadyExists, NotFound))])


async def _plan_key(view: View, key: str) -> Plan:
    namespace = view.cache(NAMESPACES).get(key)
    if namespace is None:
        return NOTHING
    return plan(namespace, view.cache(SERVICE_ACCOUNTS).get(f"{key}/{NAME}"))


def _default_is_gone(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return (namespace_of(old),) if new is None and old is not None and name_of(old) == NAME else ()
