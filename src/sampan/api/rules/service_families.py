"""Families of addresses: which of IPv4 and IPv6 a Service has.

Job: what a Service says of its families and addresses, what it had, what the cluster has → policy
    and families, filled in, or what is wrong with them. Pure.
Invariant: a Service goes from one family to two, or back, only where its policy says so: never
    because the cluster has got another range.
As upstream's initIPFamilyFields.
"""

from collections.abc import Sequence

from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj

SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"
_OTHER = {"IPv4": "IPv6", "IPv6": "IPv4"}
_LINKED = ("clusterIPs", "ipFamilies")
_POLICY = "spec.ipFamilyPolicy"

Errors = list[FieldError]


def family_of(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def addresses_of(spec: Obj) -> list[str]:
    """Those that the Service names; the first only, where it names that alone."""
    return list(spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []))


def settle_families(spec: Obj, old: Obj, available: Sequence[str]) -> Errors:
    """`old` is the spec before, empty for a new Service; `available` the cluster's families, its
    own first. Changes `spec`."""
    if _is_settled(spec, old):
        return []
    foreign = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        # The addresses of a headless Service without selector are somebody else's business.
        spec["ipFamilyPolicy"] = old.get("ipFamilyPolicy") or (REQUIRE if foreign else SINGLE)
    wrong = [*_release(spec, old), *_too_many(spec), *_infer(spec, available)]
    if not wrong and not foreign:
        wrong = _not_there(spec, available)
    if wrong:
        return wrong
    families = spec.get("ipFamilies") or [available[0]]
    grows = spec["ipFamilyPolicy"] != SINGLE and (foreign or len(available) > 1)
    if len(families) == 1 and grows:
        families = [*families, _OTHER[families[0]]]
    spec["ipFamilies"] = families
    return []


def _is_settled(spec: Obj, old: Obj) -> bool:
    """It prefers two families and had what it had, whatever the cluster has now."""
    return (
        spec.get("type") == old.get("type")
        and spec.get("ipFamilyPolicy") == old.get("ipFamilyPolicy") == PREFER
        and addresses_of(spec) == addresses_of(old)
        and spec.get("ipFamilies") == old.get("ipFamilies")
    )


def _release(spec: Obj, old: Obj) -> Errors:
    """A second address or family that was there goes with the policy, and not otherwise."""
    words = {"clusterIPs": "cluster IP", "ipFamilies": "IP family"}
    wrong: Errors = []
    for field in _LINKED:
        now, before = spec.get(field) or [], old.get(field) or []
        if spec["ipFamilyPolicy"] == SINGLE:
            if now == before and len(now) > 1:
                spec[field] = now[:1]
        elif 0 < len(now) < len(before):
            why = f"must be 'SingleStack' to release the secondary {words[field]}"
            wrong.append(invalid_value(_POLICY, spec["ipFamilyPolicy"], why))
    return wrong


def _too_many(spec: Obj) -> Errors:
    if spec["ipFamilyPolicy"] != SINGLE:
        return []
    words = {"clusterIPs": "cluster IPs", "ipFamilies": "IP families"}
    either = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
    return [
        invalid_value(_POLICY, SINGLE, f"{either} {words[field]} are specified")
        for field in _LINKED
        if len(spec.get(field) or ()) == 2
    ]


def _infer(spec: Obj, available: Sequence[str]) -> Errors:
    """Families that only the addresses say."""
    addresses, wrong = addresses_of(spec), []
    families = list(spec.get("ipFamilies") or ())
    for index, address in enumerate(addresses):
        if address == "None":
            break
        family = family_of(address)
        if index >= len(families) and family not in available:
            why = f"{family} is not configured on this cluster"
            wrong.append(invalid_value(f"spec.clusterIPs[{index}]", addresses, why))
        elif index >= len(families):
            families.append(family)
    if families:
        spec["ipFamilies"] = families
    return wrong


def _not_there(spec: Obj, available: Sequence[str]) -> Errors:
    wrong: Errors = []
    if spec["ipFamilyPolicy"] == REQUIRE and len(available) < 2:
        why = "this cluster is not configured for dual-stack services"
        wrong.append(invalid_value(_POLICY, REQUIRE, why))
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in available:
            why = "not configured on this cluster"
            wrong.append(invalid_value(f"spec.ipFamilies[{index}]", family, why))
    return wrong
