"""Which listeners a route is attached to, for which hosts.

Job: an HTTPRoute and the listeners of our Gateways → its parents, accepted or not. Pure.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj, labels_of, namespace_of
from sampan.api.rules import selectors
from sampan.core.fast_dataclass import dataclass
from sampan.network.gateway.hostnames import EVERY, in_common
from sampan.network.gateway.listeners import Listener
from sampan.network.gateway.references import GROUP
from sampan.network.gateway.world import Find, Verdict

Attached = tuple[Listener, tuple[str, ...]]  # with the hostnames that it is attached for


@dataclass(frozen=True, slots=True)
class Parent:
    reference: Obj  # as the route has it
    verdict: Verdict
    attached: tuple[Attached, ...] = ()


def parents_of(
    route: Obj, listeners: Mapping[str, Sequence[Listener]], namespace: Find
) -> list[Parent]:
    """`listeners`: by the key of their Gateway; of other Gateways' nothing is said."""
    found = []
    for reference in (route.get("spec") or {}).get("parentRefs") or ():
        theirs = listeners.get(_gateway_key(route, reference))
        if theirs is not None:
            found.append(_parent(route, reference, theirs, namespace))
    return found


def _gateway_key(route: Obj, reference: Obj) -> str:
    group, kind = reference.get("group"), reference.get("kind") or "Gateway"
    if (GROUP if group is None else group) != GROUP or kind != "Gateway":
        return ""
    return f"{reference.get('namespace') or namespace_of(route)}/{reference.get('name')}"


def _parent(route: Obj, reference: Obj, listeners: Sequence[Listener], namespace: Find) -> Parent:
    named = [each for each in listeners if _is_named(reference, each)]
    if not named:
        return _refused(reference, "NoMatchingParent", "the Gateway has no such listener")
    open_ = [each for each in named if _allows(each, route, namespace)]
    if not open_:
        return _refused(reference, "NotAllowedByListeners", "no listener takes routes from here")
    attached = [(each, hosts) for each in open_ if (hosts := _hosts(route, each))]
    if not attached:
        return _refused(
            reference, "NoMatchingListenerHostname", "no listener is for a host of the route"
        )
    return Parent(reference, Verdict("Accepted", True, "Accepted"), tuple(attached))


def _refused(reference: Obj, reason: str, why: str) -> Parent:
    return Parent(reference, Verdict("Accepted", False, reason, why))


def _is_named(reference: Obj, listener: Listener) -> bool:
    section, port = reference.get("sectionName"), reference.get("port")
    return section in (None, "", listener.name) and port in (None, 0, listener.port)


def _allows(listener: Listener, route: Obj, namespace: Find) -> bool:
    if not listener.takes_routes:
        return False
    namespaces = listener.allowed.get("namespaces") or {}
    match namespaces.get("from") or "Same":
        case "All":
            return True
        case "Same":
            return namespace_of(route) == listener.gateway.partition("/")[0]
        case "Selector":
            home = namespace(namespace_of(route))
            return home is not None and _selects(namespaces.get("selector"), home)
    return False


def _selects(selector: Obj | None, namespace: Obj) -> bool:
    try:
        return bool(selectors.from_object(selector).matches(labels_of(namespace)))
    except selectors.SelectorError:
        return False


def _hosts(route: Obj, listener: Listener) -> tuple[str, ...]:
    """The hosts that both are for."""
    wanted = [host.lower() for host in (route.get("spec") or {}).get("hostnames") or ()] or [EVERY]
    found = (in_common(listener.hostname, host) for host in wanted)
    return tuple(dict.fromkeys(host for host in found if host is not None))
