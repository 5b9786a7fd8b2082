"""Stateful sets: selector, template, claims, and how they are changed.

Job: what must hold of a StatefulSet.
Invariant: what gives a pod its identity never changes.
"""

from sampan.api import features
from sampan.api.errors import FieldError, field_forbidden, invalid_value, required_value
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_choice, validate_immutable
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules
from sampan.api.validation.storage.persistent_volume_claim import validate_claim_spec
from sampan.api.validation.workloads.workloads import (
    validate_at_most_all,
    validate_available,
    validate_collisions,
    validate_count_or_percent,
    validate_counts,
    validate_parts_of_replicas,
    validate_selector,
    validate_template,
)

Errors = list[FieldError]
_MAY_CHANGE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_STAYS = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")


def validate_stateful_set(stateful_set: Obj, errors: Errors) -> None:
    spec = spec_of(stateful_set)
    _validate_policy(spec, errors)
    _validate_strategy(spec.get("updateStrategy") or {}, errors)
    _validate_retention(spec.get("persistentVolumeClaimRetentionPolicy"), errors)
    validate_counts(spec, "spec", ("replicas", "minReadySeconds", "revisionHistoryLimit"), errors)
    validate_counts(spec.get("ordinals") or {}, "spec.ordinals", ("start",), errors)
    validate_selector(spec, "statefulset", errors)
    validate_template(_with_claims(spec), "StatefulSet", errors)


def _validate_claims(spec: Obj, errors: Errors) -> None:
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        validate_claim_spec(claim.get("spec") or {}, f"{path}.spec", errors)


def validate_new_stateful_set(stateful_set: Obj, errors: Errors) -> None:
    validate_stateful_set(stateful_set, errors)
    _validate_claims(spec_of(stateful_set), errors)
    service = spec_of(stateful_set).get("serviceName") or ""
    for wrong in names.dns_label(service) if service else ():  # of old ones as they are
        errors.append(invalid_value("spec.serviceName", service, wrong))


def validate_stateful_set_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_stateful_set(new, errors)
    spec, was = spec_of(new), spec_of(old)
    if features.changed("StatefulSetFieldsAreImmutable"):
        for key in _STAYS:
            validate_immutable(spec.get(key), was.get(key), f"spec.{key}", errors)
        return
    keys = {*spec, *was} - set(_MAY_CHANGE)
    if any(spec.get(key) != was.get(key) for key in keys):
        why = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
            " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and"
            " 'minReadySeconds' are forbidden"
        )
        errors.append(field_forbidden("spec", why))


def _with_claims(spec: Obj) -> Obj:
    """As its pods will be: each claim is a volume of that name, in place of one of the template,
    and who they are is not the template's to say."""
    template = spec.get("template") or {}
    pod = dict(template.get("spec") or {})
    named = pod.pop("subdomain", None), pod.pop("hostname", None)
    claims = dict.fromkeys(
        (claim.get("metadata") or {}).get("name") or ""
        for claim in spec.get("volumeClaimTemplates") or ()
    )
    if not claims and not any(named):
        return spec
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    own = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
    pod["volumes"] = [*made, *own]
    return {**spec, "template": {**template, "spec": pod}}


def _validate_policy(spec: Obj, errors: Errors) -> None:
    policy = spec.get("podManagementPolicy") or ""
    if not policy:
        errors.append(required_value("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        errors.append(invalid_value("spec.podManagementPolicy", policy, why))


def _validate_strategy(strategy: Obj, errors: Errors) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    path = "spec.updateStrategy"
    if not kind:
        errors.append(required_value(path))
    elif kind == "OnDelete":
        if rolling is not None:
            why = "only allowed for updateStrategy 'RollingUpdate'"
            shown = internal_form("RollingUpdateStatefulSetStrategy", rolling)
            errors.append(invalid_value(f"{path}.rollingUpdate", shown, why))
    elif kind == "RollingUpdate":
        here = f"{path}.rollingUpdate"
        validate_counts(rolling or {}, here, ("partition",), errors)
        missing = (rolling or {}).get("maxUnavailable")
        validate_count_or_percent(missing, f"{here}.maxUnavailable", errors)
        validate_at_most_all(missing, f"{here}.maxUnavailable", errors)
        if missing == 0:
            errors.append(invalid_value(f"{here}.maxUnavailable", missing, "cannot be 0"))
    else:
        why = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(
            invalid_value(path, internal_form("StatefulSetUpdateStrategy", strategy), why)
        )


def _validate_retention(policy: Obj | None, errors: Errors) -> None:
    if policy is None:
        return
    for key in ("whenDeleted", "whenScaled"):
        path = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
        validate_choice(policy.get(key), ("Retain", "Delete"), path, errors)


def validate_stateful_set_status(new: Obj, old: Obj, errors: Errors) -> None:
    status = status_of(new)
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    keys = ("replicas", *parts, "observedGeneration", "collisionCount")
    validate_counts(status, "status", keys, errors)
    validate_parts_of_replicas(status, parts, errors)
    validate_available(status, "status.readyReplicas", errors)
    validate_collisions(new, old, errors)


RULES = Rules(
    names.dns_label,
    validate_new_stateful_set,
    validate_stateful_set_update,
    validate_stateful_set_status,
)
