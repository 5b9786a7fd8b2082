"""Defaults of what a pod asks for as a whole.

Job: `spec.resources` of a pod that has some → what its containers say of the rest.
Invariant: nothing that is written changes.
"""

from sampan.api.objects import Obj
from sampan.api.quantity import value_of
from sampan.api.rules import pod_resources

_SHARED = ("cpu", "memory")  # may be asked for more often than they are there
_PAGES = "hugepages-"


def default_early(spec: Obj) -> None:
    """With all other defaults, before admission."""
    if _is_set(spec):
        _default_pages(spec)
        if spec["resources"].get("limits"):
            _default_requests(spec)


def default_late(spec: Obj) -> None:
    """After admission, of all the containers that there are by then."""
    if _is_set(spec):
        _default_pages(spec)
        _default_requests(spec)
        _default_limits(spec)


def _is_set(spec: Obj) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _default_pages(spec: Obj) -> None:
    resources = spec["resources"]
    limits: Obj = dict(resources.get("limits") or {})
    for name, amount in pod_resources.container_limits(spec).items():
        if name.startswith(_PAGES) and name not in (resources.get("requests") or {}):
            limits.setdefault(name, str(amount))
    if limits:
        resources["limits"] = limits


def _default_requests(spec: Obj) -> None:
    """What the containers ask for together, else the pod's own limit."""
    resources = spec["resources"]
    requests: Obj = dict(resources.get("requests") or {})
    for name, amount in pod_resources.container_requests(spec).items():
        if name in _SHARED:
            requests.setdefault(name, str(amount))
    for name, amount in (resources.get("limits") or {}).items():
        if pod_resources.can_be_asked_for_as_a_whole(name):
            requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def _default_limits(spec: Obj) -> None:
    """Where every container has one: what they may use together, but no less than is asked for."""
    resources, limits = spec["resources"], dict(spec["resources"].get("limits") or {})
    together = pod_resources.container_limits(spec)
    for name, asked in (resources.get("requests") or {}).items():
        if name in limits or not pod_resources.can_be_asked_for_as_a_whole(name):
            continue
        if name in together and _is_limited_in_all(spec, name):
            limits[name] = str(together[name]) if value_of(asked) <= together[name] else asked
    if limits:
        resources["limits"] = limits


def _is_limited_in_all(spec: Obj, name: str) -> bool:
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return all(
        name in ((container.get("resources") or {}).get("limits") or {})
        for kind in kinds
        for container in spec.get(kind) or ()
    )
