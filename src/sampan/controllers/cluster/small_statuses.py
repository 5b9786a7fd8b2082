"""Status of ValidatingAdmissionPolicies and ServiceCIDRs.

Job: the status of ValidatingAdmissionPolicies, and the conditions and finalizer of ServiceCIDRs.
Invariant: a ServiceCIDR that still has addresses in use, and nobody else to hold them, stays.
"""

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from sampan.api.objects import Obj, is_deleted, meta_of, name_of
from sampan.api.resources import SERVICE_CIDRS, SERVICES, VALIDATING_ADMISSION_POLICIES
from sampan.api.rules.conditions import with_condition
from sampan.api.schema.published import Schema
from sampan.controllers.actions import NOTHING, Plan, merge_patch, status_patch
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.core.side_thread import SideThread, countdown

CHECK_SECONDS = 1.0  # of one policy; what comes later in it is not checked
CIDR_FINALIZER = "networking.k8s.io/service-cidr-finalizer"
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def validating_admission_policy_status_controller() -> Controller:
    check, side = checker(), SideThread("type checking")

    async def planned(view: View, key: str) -> Plan:
        policy = view.cache(VALIDATING_ADMISSION_POLICIES).get(key)
        if policy is None or is_checked(policy):
            return NOTHING
        # A policy may have thousands of expressions.
        return plan_policy(policy, await side.run(partial(check, policy)))

    return Controller(
        name="validatingadmissionpolicy-status-controller",
        component="validatingadmissionpolicy-status",
        aliases=("validatingadmissionpolicy-status",),
        wakes={VALIDATING_ADMISSION_POLICIES: own_key},
        planned=planned,
        workers=1,
    )


Check = Callable[[Obj], list[Obj]]  # policy → the warnings about its expressions


def checker() -> Check:
    made: list[Check] = []

    def check(policy: Obj) -> list[Obj]:
        if not made:
            # The language and the published types come with the first policy.
            from sampan.api.cel.schema_objects import SchemaObjects
            from sampan.api.cel.type_checking import expression_warnings

            objects = SchemaObjects(Schema.load())
            made.append(lambda item: expression_warnings(item, objects, countdown(CHECK_SECONDS)))
        return made[0](policy)

    return check


def is_checked(policy: Obj) -> bool:
    """Once for each generation: whether its expressions fit the kinds that it is about."""
    status, generation = policy.get("status") or {}, meta_of(policy).get("generation", 0)
    return status.get("observedGeneration") == generation and "typeChecking" in status


def plan_policy(policy: Obj, warnings: Sequence[Obj]) -> Plan:
    before, generation = policy.get("status") or {}, meta_of(policy).get("generation", 0)
    status = {
        **before,
        "observedGeneration": generation,
        "typeChecking": {"expressionWarnings": list(warnings)} if warnings else {},
    }
    patch = status_patch(VALIDATING_ADMISSION_POLICIES, policy, status)
    return NOTHING if patch is None else Plan([patch])


def service_cidr_controller() -> Controller:
    async def planned(view: View, key: str) -> Plan:
        cidr = view.cache(SERVICE_CIDRS).get(key)
        if cidr is None:
            return NOTHING
        addresses = [
            item
            for service in view.cache(SERVICES).all()
            for item in (service.get("spec") or {}).get("clusterIPs") or ()
            if item != "None"
        ]
        others = [item for item in view.cache(SERVICE_CIDRS).all() if name_of(item) != key]
        return plan_cidr(cidr, others, addresses, view.now)

    return Controller(
        name="service-cidr-controller",
        component="service-cidr-controller",
        aliases=("service-cidr",),
        wakes={SERVICE_CIDRS: _every_cidr, SERVICES: _cidrs_going},
        planned=planned,
        workers=1,
    )


CIDR_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "",
    "message": "Kubernetes Service CIDR is ready",
}
CIDR_HELD = {
    "type": "Ready",
    "status": "False",
    "reason": "Terminating",
    "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or "
    "create a new ServiceCIDR",
}


def plan_cidr(cidr: Obj, others: Sequence[Obj], addresses: Sequence[str], now: float) -> Plan:
    finalizers: list[str] = meta_of(cidr).get("finalizers") or []
    held = is_deleted(cidr) and _holds_alone(cidr, others, addresses)
    if is_deleted(cidr) and not held:
        if CIDR_FINALIZER not in finalizers:
            return NOTHING
        left = [finalizer for finalizer in finalizers if finalizer != CIDR_FINALIZER]
        patch = {"metadata": {"finalizers": left or None}}
        return Plan([merge_patch(SERVICE_CIDRS, cidr, patch)])
    if not is_deleted(cidr) and CIDR_FINALIZER not in finalizers:
        patch = {"metadata": {"finalizers": [*finalizers, CIDR_FINALIZER]}}
        # The finalizer first, and alone: its write carries the revision.
        return Plan([merge_patch(SERVICE_CIDRS, cidr, patch)])
    before = (cidr.get("status") or {}).get("conditions") or []
    conditions = with_condition(before, CIDR_HELD if held else CIDR_READY, now)
    status = status_patch(SERVICE_CIDRS, cidr, {"conditions": conditions})
    return Plan([] if status is None else [status])


def _holds_alone(cidr: Obj, others: Sequence[Obj], addresses: Sequence[str]) -> bool:
    mine = _networks(cidr)
    elsewhere = [
        network for other in others if not is_deleted(other) for network in _networks(other)
    ]
    for text in addresses:
        address = ipaddress.ip_address(text)
        inside = any(address in item for item in mine)
        if inside and not any(address in item for item in elsewhere):
            return True
    return False


def _networks(cidr: Obj) -> list[_Network]:
    texts = (cidr.get("spec") or {}).get("cidrs") or ()
    return [ipaddress.ip_network(text) for text in texts]


def _every_cidr(caches: Caches, _old: Obj | None, _new: Obj | None) -> Iterable[str]:
    return [name_of(cidr) for cidr in caches(SERVICE_CIDRS).all()]


def _cidrs_going(caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Only the end of a service can free a range."""
    if new is not None:
        return ()
    return [name_of(cidr) for cidr in caches(SERVICE_CIDRS).all() if is_deleted(cidr)]
