"""Services and controllers of pods, as far as they say which pods belong together.

Job: whom a pod is to be spread among, where it does not say so itself.
Invariant: what is remembered is forgotten when a service or a controller changes.
Owner: the scheduler's loop; rules read it.
"""

from sampan.api.objects import Obj, controller_of
from sampan.api.rules.node_selectors import Requirements, label_requirements
from sampan.core.bounded import FlushedMemo
from sampan.scheduler.model.pod_terms import Selector, selector_of

# Kinds whose selectors count, with their groups.
CONTROLLERS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
NO_OWNER = ("", "")
MOST_REMEMBERED = 4096

Owner = tuple[str, str]  # kind, name
Labels = tuple[tuple[str, str], ...]


class Workloads:
    def __init__(self) -> None:
        self._services: dict[str, dict[str, dict[str, str]]] = {}  # namespace → key → selector
        self._controllers: dict[tuple[str, str], Selector] = {}  # kind, key
        self._known: FlushedMemo[tuple[str, Labels, Owner], Selector] = FlushedMemo(MOST_REMEMBERED)

    def put_service(self, key: str, written: Obj | None) -> None:
        self._known.clear()
        namespace = key.partition("/")[0]
        there = self._services.setdefault(namespace, {})
        there.pop(key, None)
        # As upstream: a service without a selector is of no pod, not of every one.
        if written is not None and (selector := (written.get("spec") or {}).get("selector")):
            there[key] = dict(selector)
        if not there:
            del self._services[namespace]

    def put_controller(self, kind: str, key: str, written: Obj | None) -> None:
        if written is None:
            self._controllers.pop((kind, key), None)
            self._known.clear()
            return
        selector = (written.get("spec") or {}).get("selector")
        made = label_requirements(selector or {}) if _is_plain(kind) else selector_of(selector)
        if self._controllers.get((kind, key)) != made:  # most changes are of the status
            self._controllers[kind, key] = made
            self._known.clear()

    def selector_for(self, namespace: str, labels: Labels, owner: Owner) -> Selector:
        """Of the pods that a pod is to be spread among; None: there are none."""
        if owner == NO_OWNER and namespace not in self._services:
            return None
        key = (namespace, labels, owner)
        known = self._known.known
        if key in known:
            return known[key]
        return self._known.keep(key, self._selector(namespace, dict(labels), owner))

    def _selector(self, namespace: str, labels: dict[str, str], owner: Owner) -> Selector:
        merged: dict[str, str] = {}
        for selector in self._services.get(namespace, {}).values():
            if selector.items() <= labels.items():
                merged |= selector
        kind, name = owner
        own = self._controllers.get((kind, f"{namespace}/{name}")) or ()
        return Requirements((*label_requirements(merged), *own)) or None


def owner_of(pod: Obj) -> Owner:
    owner = controller_of(pod)
    if owner is None or CONTROLLERS.get(owner.get("kind", "")) != owner.get("apiVersion"):
        return NO_OWNER
    return (owner["kind"], owner.get("name") or "")


def _is_plain(kind: str) -> bool:
    """A ReplicationController's selector is labels, not a LabelSelector."""
    return kind == "ReplicationController"
