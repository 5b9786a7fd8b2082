"""What must hold of a pod's spec, in a Pod or in the template of something that makes pods.

Job: run the rules of the parts, in upstream's order.
Invariant: the spec has been defaulted; a missing default is a fault like any other.
"""

from sampan.api.errors import FieldError, field_forbidden, invalid_value, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.rules.pods import MIRROR_ANNOTATION
from sampan.api.validation.fields import (
    MAX_INT32,
    validate_choice,
    validate_with,
)
from sampan.api.validation.metadata import validate_annotations, validate_labels
from sampan.api.validation.pod_spec.containers import Surroundings, validate_containers
from sampan.api.validation.pod_spec.network import (
    validate_dns_config,
    validate_dns_policy,
    validate_host_aliases,
    validate_host_network,
    validate_hostnames,
)
from sampan.api.validation.pod_spec.pod_resources import (
    validate_pod_level,
    validate_resource_claims,
)
from sampan.api.validation.pod_spec.resources import validate_overhead
from sampan.api.validation.pod_spec.scheduling import (
    validate_affinity,
    validate_gates,
    validate_spread,
    validate_tolerations,
)
from sampan.api.validation.pod_spec.security import (
    validate_os,
    validate_pod_security,
    validate_user_namespace,
)
from sampan.api.validation.pod_spec.volumes import validate_volumes
from sampan.core.digits import is_digits

Errors = list[FieldError]
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def validate_pod_spec(spec: Obj, path: str, errors: Errors, *, is_pod: bool) -> None:
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        errors.append(required_value(f"{path}.terminationGracePeriodSeconds"))
    volumes = spec.get("volumes")
    claims = spec.get("resourceClaims")
    around = Surroundings(
        validate_volumes(volumes, f"{path}.volumes", errors) if volumes else {},
        validate_resource_claims(claims, f"{path}.resourceClaims", errors) if claims else (),
        grace,
        spec.get("restartPolicy") or "",
        spec.get("hostUsers") is not False,
        is_pod,
        (spec.get("os") or {}).get("name") or "",
    )
    validate_containers(spec, around, path, errors)
    if spec.get("resources") is not None:
        validate_pod_level(spec, f"{path}.resources", errors)
    validate_host_network(spec, path, errors, is_pod=is_pod)
    if spec.get("restartPolicy") not in _RESTART_POLICIES:
        policy = spec.get("restartPolicy")
        validate_choice(policy, _RESTART_POLICIES, f"{path}.restartPolicy", errors)
    validate_dns_policy(spec, path, errors)
    if spec.get("nodeSelector"):
        validate_labels(spec["nodeSelector"], f"{path}.nodeSelector", errors)
    validate_pod_security(spec, path, errors)
    if spec.get("affinity"):
        validate_affinity(spec["affinity"], f"{path}.affinity", errors)
    validate_dns_config(spec, path, errors)
    _validate_gates_and_spread(spec, path, errors)
    validate_user_namespace(spec, path, errors)
    _validate_names(spec, ("serviceAccountName", "nodeName"), path, errors)
    _validate_deadline(spec, path, errors)
    validate_hostnames(spec, path, errors)
    if spec.get("tolerations"):
        validate_tolerations(spec["tolerations"], f"{path}.tolerations", errors)
    validate_host_aliases(spec, path, errors)
    _validate_names(spec, ("priorityClassName",), path, errors)
    if spec.get("runtimeClassName") is not None:
        name = spec["runtimeClassName"]
        validate_with(names.dns_subdomain, name, f"{path}.runtimeClassName", errors)
    _validate_rest(spec, path, errors)


def validate_pod_template(template: Obj, path: str, errors: Errors) -> None:
    """Of a Deployment, a Job and so on. Ephemeral containers have no place there."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    # Upstream leaves `metadata` out of these two paths.
    validate_labels(meta.get("labels") or {}, f"{path}.labels", errors)
    annotations = meta.get("annotations") or {}
    validate_annotations(annotations, f"{path}.annotations", errors)
    validate_pod_annotations(annotations, spec, f"{path}.annotations", errors)
    validate_pod_spec(spec, f"{path}.spec", errors, is_pod=False)
    if spec.get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        errors.append(field_forbidden(f"{path}.spec.ephemeralContainers", why))


def validate_pod_annotations(
    annotations: dict[str, str], spec: Obj, path: str, errors: Errors
) -> None:
    """The few annotations that mean something to the system itself."""
    mirror = annotations.get(MIRROR_ANNOTATION)
    if mirror is not None and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid_value(f"{path}[{MIRROR_ANNOTATION}]", mirror, why))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        why = "must be a 32bit integer"
        errors.append(invalid_value(f"{path}[{_DELETION_COST}]", cost, why))


def _is_int32(text: str) -> bool:
    """As Go prints one: no plus, no leading zeros."""
    digits = text.removeprefix("-")
    if not is_digits(digits) or len(digits) > 10:
        return False
    if digits != "0" and digits.startswith("0"):
        return False
    return text != "-0" and -MAX_INT32 - 1 <= int(text) <= MAX_INT32


def _validate_gates_and_spread(spec: Obj, path: str, errors: Errors) -> None:
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        field = f"{path}.readinessGates[{index}].conditionType"
        validate_with(names.qualified_name, gate.get("conditionType") or "", field, errors)
    if spec.get("schedulingGates"):
        validate_gates(spec["schedulingGates"], f"{path}.schedulingGates", errors)
    if spec.get("topologySpreadConstraints"):
        here = f"{path}.topologySpreadConstraints"
        validate_spread(spec["topologySpreadConstraints"], here, errors)


def _validate_names(spec: Obj, keys: tuple[str, ...], path: str, errors: Errors) -> None:
    for key in keys:
        name = spec.get(key)
        if name:
            for wrong in names.dns_subdomain(name):
                errors.append(invalid_value(f"{path}.{key}", name, wrong))


def _validate_deadline(spec: Obj, path: str, errors: Errors) -> None:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        why = names.between(1, MAX_INT32)
        errors.append(invalid_value(f"{path}.activeDeadlineSeconds", deadline, why))


def _validate_rest(spec: Obj, path: str, errors: Errors) -> None:
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        choices = ("PreemptLowerPriority", "Never")
        validate_choice(policy, choices, f"{path}.preemptionPolicy", errors)
    if spec.get("overhead"):
        validate_overhead(spec["overhead"], f"{path}.overhead", errors)
    if spec.get("os") is not None:
        validate_os(spec, path, errors)
