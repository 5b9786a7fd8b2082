"""Resources of the pod as a whole, and the claims that its containers may use.

Job: spec.resources and spec.resourceClaims → causes.
Invariant: the pod as a whole asks for at least what its containers ask for.
"""

from sampan.api.errors import FieldError, duplicate, invalid_value, required_value
from sampan.api.objects import Obj
from sampan.api.quantity import ZERO
from sampan.api.rules import names, pod_resources
from sampan.api.validation.fields import validate_with
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec.resources import amount_of, validate_pod_resources

Errors = list[FieldError]


def validate_pod_level(spec: Obj, path: str, errors: Errors) -> None:
    resources = spec["resources"]
    claims = [claim.get("name") or "" for claim in spec.get("resourceClaims") or ()]
    validate_pod_resources(resources, claims, path, errors)
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, needed in pod_resources.container_requests(spec).items():
        asked = amount_of(requests.get(name) or "0") or ZERO
        if asked < needed:
            why = f"must be greater than or equal to aggregate container requests of {needed}"
            errors.append(invalid_value(f"{path}.requests[{name}]", str(asked), why))
    for index, container in enumerate(spec.get("containers") or ()):
        own = (container.get("resources") or {}).get("limits") or {}
        _validate_below_pod(own, limits, f"{path}.containers[{index}]", errors)


def _validate_below_pod(own: Obj, limits: Obj, path: str, errors: Errors) -> None:
    for name in [name for name in own if name in limits]:
        limit, most = amount_of(own[name]), amount_of(limits[name] or "")
        if limit is not None and most is not None and most < limit:
            why = f"must be less than or equal to pod limits of {most}"
            errors.append(invalid_value(f"{path}[{name}].limits", str(limit), why))


def validate_resource_claims(claims: list[Obj], path: str, errors: Errors) -> frozenset[str]:
    """The names that containers may refer to."""
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here = f"{path}[{index}]"
        name = claim.get("name") or ""
        if not name:
            errors.append(required_value(f"{here}.name"))
        elif name in seen:
            errors.append(duplicate(f"{here}.name", name))
        else:
            validate_with(names.dns_label, name, f"{here}.name", errors)
            seen.add(name)
        _validate_claim(claim, here, errors)
    return frozenset(seen)


def _validate_claim(claim: Obj, path: str, errors: Errors) -> None:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    given = [key for key in sources if claim.get(key) is not None]
    if len(given) > 1:
        why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        errors.append(invalid_value(path, internal_form("PodResourceClaim", claim), why))
    if not given:
        why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.append(invalid_value(path, internal_form("PodResourceClaim", claim), why))
    for key in given:
        validate_with(names.dns_subdomain, claim[key], f"{path}.{key}", errors)
