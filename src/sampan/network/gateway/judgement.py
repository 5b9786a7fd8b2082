"""Verdicts on Gateways, listeners and routes: the routing table and their status.

Job: what the API has → the table for requests, and the status of each class, Gateway and route.
    Pure.
Invariant: what others wrote into a route's status stays.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sampan.api.objects import Obj, key_of, name_of
from sampan.api.rules.conditions import find, transition_time
from sampan.core.fast_dataclass import dataclass
from sampan.network.gateway.attachment import Parent, parents_of
from sampan.network.gateway.listeners import ROUTE, Listener, listeners_of
from sampan.network.gateway.references import GROUP, is_permitted
from sampan.network.gateway.rules import BackendRef, Rule, rules_of
from sampan.network.gateway.table import GatewayTable
from sampan.network.gateway.world import CONTROLLER, Verdict, World, is_our_class
from sampan.network.ingress.backends import why_not_served
from sampan.network.ingress.routing import Backend

_REASONS = {
    "ServiceNotFound": "BackendNotFound",
    "ServicePortNotFound": "BackendNotFound",
    "ExternalNameNotSupported": "UnsupportedProtocol",
    "ProtocolNotSupported": "UnsupportedProtocol",
}
_ADDRESS_TYPES = ("IPAddress", "Hostname")
_Counts = Counter[tuple[str, str]]  # of routes, by Gateway and listener


@dataclass(frozen=True, slots=True)
class Judgement:
    table: GatewayTable
    classes: list[tuple[Obj, Obj]]  # each with its status
    gateways: list[tuple[Obj, Obj]]
    routes: list[tuple[Obj, Obj]]


def judged(world: World, now: float) -> Judgement:
    ours = [each for each in world.classes if is_our_class(each)]
    names = {name_of(each) for each in ours}
    gateways = sorted((each for each in world.gateways if _class_of(each) in names), key=_age)
    listeners = {key_of(gateway): listeners_of(gateway, world) for gateway in gateways}
    table, counts, routes = _table(listeners), _Counts(), []
    for route in world.routes:
        rules, refused = rules_of(route)
        parents = [
            _with_rules(parent, rules, refused)
            for parent in parents_of(route, listeners, world.namespace)
        ]
        _attach(table, counts, route, rules, parents)
        routes.append((route, _route_status(route, parents, rules, refused, world, now)))
    table.sort()
    told = [
        (gateway, _gateway_status(gateway, listeners[key_of(gateway)], counts, world, now))
        for gateway in gateways
    ]
    return Judgement(table, [(each, _class_status(each, now)) for each in ours], told, routes)


def _table(listeners: Mapping[str, Sequence[Listener]]) -> GatewayTable:
    table = GatewayTable()
    for each in (each for some in listeners.values() for each in some if each.is_served):
        table.listen(each.protocol, each.hostname, each.secrets)
    return table


def _attach(
    table: GatewayTable, counts: _Counts, route: Obj, rules: list[Rule], parents: Sequence[Parent]
) -> None:
    # Two parentRefs may lead to one listener.
    attached = {
        (pair[0].gateway, pair[0].name): pair for parent in parents for pair in parent.attached
    }
    for place, pair in attached.items():
        counts[place] += 1
        if pair[0].is_served:
            table.attach(route, rules, pair)


def backend_of(given: BackendRef, world: World) -> Backend | Verdict:
    """Where it leads, or why it leads nowhere."""
    reference = given.reference
    if given.kind != "Service":
        return _unresolved("InvalidKind", f"{given.kind} {reference.key} is no Service")
    if not is_permitted(reference, world.grants):
        why = f"no ReferenceGrant of {reference.namespace} permits Service {reference.key}"
        return _unresolved("RefNotPermitted", why)
    backend = Backend(reference.namespace, reference.name, given.port)
    problem = why_not_served(backend, world.service(reference.key))
    return backend if problem is None else _unresolved(_REASONS[problem[0]], problem[1])


def _unresolved(reason: str, why: str) -> Verdict:
    return Verdict("ResolvedRefs", False, reason, why)


def _with_rules(parent: Parent, rules: Sequence[Rule], refused: Sequence[str]) -> Parent:
    """A route without any rule that is served is not accepted."""
    if rules or not refused or not parent.verdict.holds:
        return parent
    verdict = Verdict("Accepted", False, "UnsupportedValue", "; ".join(refused))
    return Parent(parent.reference, verdict)


def _route_status(
    route: Obj, parents: Sequence[Parent], rules: Sequence[Rule], refused: Sequence[str],
    world: World, now: float,
) -> Obj:  # fmt: skip
    present = (route.get("status") or {}).get("parents") or ()
    others = [each for each in present if each.get("controllerName") != CONTROLLER]
    ours = [each for each in present if each.get("controllerName") == CONTROLLER]
    resolved = _resolved(rules, world)
    told = []
    for parent in parents:
        verdicts = [parent.verdict, resolved]
        if refused and parent.verdict.holds:
            why = f"Dropped Rule(s): {'; '.join(refused)}"
            verdicts.append(Verdict("PartiallyInvalid", True, "UnsupportedValue", why))
        before = next((each for each in ours if each["parentRef"] == parent.reference), None)
        told.append({
            "parentRef": parent.reference, "controllerName": CONTROLLER,
            "conditions": _conditions(before, verdicts, route, now),
        })  # fmt: skip
    return {"parents": [*others, *told]}


def _resolved(rules: Iterable[Rule], world: World) -> Verdict:
    for given in (backend for rule in rules for backend in rule.backends):
        found = backend_of(given, world)
        if isinstance(found, Verdict):
            return found
    return Verdict("ResolvedRefs", True, "ResolvedRefs")


def _class_status(gateway_class: Obj, now: float) -> Obj:
    verdict = Verdict("Accepted", True, "Accepted")
    if (gateway_class.get("spec") or {}).get("parametersRef"):
        verdict = Verdict("Accepted", False, "InvalidParameters", "parametersRef is not supported")
    return {"conditions": _conditions(gateway_class.get("status"), [verdict], gateway_class, now)}


def _gateway_status(
    gateway: Obj, listeners: Sequence[Listener], counts: _Counts, world: World,
    now: float,
) -> Obj:  # fmt: skip
    status = gateway.get("status") or {}
    present = {each["name"]: each for each in status.get("listeners") or ()}
    accepted = _accepted(gateway, listeners)
    is_served = accepted.holds and any(each.is_served for each in listeners)
    programmed = Verdict("Programmed", is_served, "Programmed" if is_served else "Invalid")
    if is_served and not _has_addresses(gateway, world):
        why = "it is served at the addresses of the status only"
        programmed = Verdict("Programmed", False, "AddressNotUsable", why)
    return {
        "addresses": list(world.addresses),
        "conditions": _conditions(status, [accepted, programmed], gateway, now),
        "listeners": [
            {
                "name": each.name,
                "supportedKinds": [{"group": GROUP, "kind": ROUTE}] if each.takes_routes else [],
                "attachedRoutes": counts[each.gateway, each.name],
                "conditions": _conditions(present.get(each.name), each.verdicts, gateway, now),
            }
            for each in listeners
        ],
    }


def _accepted(gateway: Obj, listeners: Sequence[Listener]) -> Verdict:
    spec = gateway.get("spec") or {}
    if (spec.get("infrastructure") or {}).get("parametersRef"):
        why = "infrastructure.parametersRef is not supported"
        return Verdict("Accepted", False, "InvalidParameters", why)
    for address in spec.get("addresses") or ():
        if (address.get("type") or "IPAddress") not in _ADDRESS_TYPES:
            why = f"addresses of type {address['type']} are not supported"
            return Verdict("Accepted", False, "UnsupportedAddress", why)
    good = [each for each in listeners if _is_accepted(each)]
    if len(good) == len(listeners):
        return Verdict("Accepted", True, "Accepted")
    names = ", ".join(each.name for each in listeners if each not in good)
    return Verdict("Accepted", bool(good), "ListenersNotValid", f"not valid: {names}")


def _is_accepted(listener: Listener) -> bool:
    found = {verdict.type: verdict.holds for verdict in listener.verdicts}
    return found["Accepted"] and not found["Conflicted"]


def _has_addresses(gateway: Obj, world: World) -> bool:
    asked = [each for each in (gateway.get("spec") or {}).get("addresses") or ()
             if each.get("value")]  # fmt: skip
    ours = {each["value"] for each in world.addresses}
    return not asked or any(each["value"] in ours for each in asked)


def _conditions(before: Obj | None, verdicts: Iterable[Verdict], obj: Obj, now: float) -> list[Obj]:
    present = (before or {}).get("conditions") or ()
    return [_condition(present, verdict.condition(obj), now) for verdict in verdicts]


def _condition(present: Sequence[Obj], wanted: Obj, now: float) -> Obj:
    before = find(present, wanted["type"])
    return {**wanted, "lastTransitionTime": transition_time(before, wanted["status"], now)}


def _class_of(gateway: Obj) -> str:
    return str((gateway.get("spec") or {}).get("gatewayClassName") or "")


def _age(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("creationTimestamp") or "", key_of(obj)
