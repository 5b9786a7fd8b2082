"""Pods: create, update, status, and the subresources that change a pod.

Job: what must hold of a Pod, and what may change in one.
Invariant: a pod's spec is immutable but for the fields that `UPDATABLE` names.
"""

from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, annotations_of, copy_of, meta_of, spec_of, status_of
from sampan.api.rules import names
from sampan.api.rules.node_agent.restart_rules import may_restart_all
from sampan.api.rules.pods import MIRROR_ANNOTATION
from sampan.api.validation.difference import difference
from sampan.api.validation.fields import IMMUTABLE, MAX_INT32, validate_with
from sampan.api.validation.metadata import validate_metadata
from sampan.api.validation.network.addresses import family_of, validate_address
from sampan.api.validation.pod_placement import put, validate_narrowing
from sampan.api.validation.pod_resize import validate_resize
from sampan.api.validation.pod_spec.pod_spec import validate_pod_annotations, validate_pod_spec
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
UPDATABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_NOT_NEGATIVE = "must be a non-negative integer"
_SYSTEM_CONDITIONS = frozenset((
    "PodScheduled", "Ready", "ContainersReady", "Initialized", "PodReadyToStartContainers",
    "DisruptionTarget", "PodResizePending", "PodResizeInProgress", "AllContainersRestarting",
))  # fmt: skip


def validate_pod(pod: Obj, errors: Errors) -> None:
    spec = spec_of(pod)
    annotations = annotations_of(pod)
    if annotations:
        validate_pod_annotations(annotations, spec, "metadata.annotations", errors)
    validate_pod_spec(spec, "spec", errors, is_pod=True)
    if not spec.get("serviceAccountName"):
        _forbid_tokens(spec, errors)


def validate_pod_create(pod: Obj, errors: Errors) -> None:
    validate_pod(pod, errors)
    spec = spec_of(pod)
    if spec.get("ephemeralContainers"):
        errors.append(field_forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        errors.append(field_forbidden("spec.nodeName", why))


def validate_pod_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_metadata(meta_of(new), True, names.dns_subdomain, "metadata", errors)
    validate_pod(new, errors)
    _validate_mirror_unchanged(new, old, errors)
    spec, was = spec_of(new), spec_of(old)
    for kind in ("containers", "initContainers"):
        if len(spec.get(kind) or ()) != len(was.get(kind) or ()):
            why = "pod updates may not add or remove containers"
            errors.append(field_forbidden(f"spec.{kind}", why))
            return
    if not _validate_deadline(spec, was, errors):
        return
    _validate_added_tolerations(spec, was, errors)
    _validate_removed_gates(spec, was, errors)
    if spec != was:
        _validate_spec_change(spec, was, errors)


def _validate_conditions(status: Obj, errors: Errors) -> None:
    for index, condition in enumerate(status.get("conditions") or ()):
        kind, generation = condition.get("type") or "", condition.get("observedGeneration") or 0
        if generation < 0:
            path = f"metadata.conditions[{index}].observedGeneration"
            errors.append(invalid_value(path, generation, _NOT_NEGATIVE))
        if kind not in _SYSTEM_CONDITIONS:
            validate_with(names.qualified_name, kind, f"metadata.conditions[{index}].Type", errors)


def _validate_nominated(status: Obj, was: Obj, spec: Obj, errors: Errors) -> None:
    nominated, path = status.get("nominatedNodeName"), "status.nominatedNodeName"
    if nominated and nominated != was.get("nominatedNodeName"):
        validate_with(names.dns_subdomain, nominated, path, errors)
        if spec.get("nodeName"):
            why = "may not be set on pods that are already bound to a node"
            errors.append(field_forbidden(path, why))
    observed = status.get("observedGeneration") or 0
    if observed < 0:
        errors.append(invalid_value("status.observedGeneration", observed, _NOT_NEGATIVE))


def validate_pod_status(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_mirror_unchanged(new, old, errors)
    status, was, spec = status_of(new), status_of(old), spec_of(old)
    _validate_conditions(status, errors)
    if spec_of(new).get("nodeName") != spec.get("nodeName"):
        errors.append(field_forbidden("status.nodeName", "may not be changed directly"))
    _validate_nominated(status, was, spec, errors)
    quality = status.get("qosClass")
    if was.get("qosClass") and quality != was["qosClass"]:
        errors.append(invalid_value("status.qosClass", quality or "", IMMUTABLE))
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        if kind in was:
            _validate_no_return(kind, status, was, spec, errors)
    if "resourceClaimStatuses" in status:
        _validate_claim_statuses(status, spec_of(new), errors)
    _validate_ips(status, was, errors)


def _validate_claim_statuses(status: Obj, spec: Obj, errors: Errors) -> None:
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, item in enumerate(status.get("resourceClaimStatuses") or ()):
        name, path = item.get("name") or "", f"status.resourceClaimStatuses[{index}].name"
        if name not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid_value(path, name, why))
        if name in seen:
            errors.append(duplicate(path, name))
        seen.add(name)
        if item.get("resourceClaimName"):
            validate_with(names.dns_subdomain, item["resourceClaimName"], path, errors)


def validate_binding(binding: Obj, errors: Errors) -> None:
    target = binding.get("target") or {}
    kind = target.get("kind")
    if kind and kind != "Node":
        errors.append(not_supported("target.kind", kind, ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required_value("target.name"))


def validate_ephemeral_containers(new: Obj, old: Obj, errors: Errors) -> None:
    """The `ephemeralcontainers` subresource: they are only ever added."""
    validate_pod(new, errors)
    if MIRROR_ANNOTATION in annotations_of(old):
        errors.append(field_forbidden("[]", "static pods do not support ephemeral containers"))
    now = {item.get("name"): item for item in spec_of(new).get("ephemeralContainers") or ()}
    for container in spec_of(old).get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in now:
            why = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(field_forbidden("spec.ephemeralContainers", why))
        elif now[name] != container:
            changes = difference("EphemeralContainer", container, now[name])
            why = f'existing ephemeral containers "{name}" may not be changed\n{changes}'
            errors.append(field_forbidden("spec.ephemeralContainers", why))


def validate_resized(new: Obj, old: Obj, errors: Errors) -> None:
    """The `resize` subresource: only the CPU and memory of containers, and not the QoS class."""
    validate_pod(new, errors)
    validate_resize(new, old, errors)


def _forbid_tokens(spec: Obj, errors: Errors) -> None:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                field = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                why = "must not be specified when serviceAccountName is not set"
                errors.append(field_forbidden(field, why))


def _validate_mirror_unchanged(new: Obj, old: Obj, errors: Errors) -> None:
    annotations, before = annotations_of(new), annotations_of(old)
    if not annotations and not before:
        return
    now, was = annotations.get(MIRROR_ANNOTATION), before.get(MIRROR_ANNOTATION)
    if now == was:
        return
    field = f"metadata.annotations[{MIRROR_ANNOTATION}]"
    if was is None:
        errors.append(field_forbidden(field, "may not add mirror pod annotation"))
    else:
        errors.append(field_forbidden(field, "may not remove or update mirror pod annotation"))


def _validate_deadline(spec: Obj, was: Obj, errors: Errors) -> bool:
    """It may be set, and then only shortened."""
    field = "spec.activeDeadlineSeconds"
    now, before = spec.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds")
    if now is None:
        if before is not None:
            why = "must not update from a positive integer to nil value"
            errors.append(invalid_value(field, None, why))
        return True
    if not 0 <= now <= MAX_INT32:
        errors.append(invalid_value(field, now, names.between(0, MAX_INT32)))
        return False
    if before is not None and before < now:
        why = "must be less than or equal to previous value"
        errors.append(invalid_value(field, now, why))
        return False
    return True


def _validate_added_tolerations(spec: Obj, was: Obj, errors: Errors) -> None:
    now = [_without_seconds(toleration) for toleration in spec.get("tolerations") or ()]
    if any(_without_seconds(toleration) not in now for toleration in was.get("tolerations") or ()):
        why = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(field_forbidden("spec.tolerations", why))


def _without_seconds(toleration: Obj) -> Obj:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _validate_removed_gates(spec: Obj, was: Obj, errors: Errors) -> None:
    known = {gate.get("name") for gate in was.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            errors.append(field_forbidden(f"spec.schedulingGates[{index}].name", why))


def _validate_spec_change(spec: Obj, was: Obj, errors: Errors) -> None:
    """Put back what may change; whatever still differs may not."""
    rest = copy_of(spec)
    for kind in ("containers", "initContainers"):
        for container, before in zip(rest.get(kind) or (), was.get(kind) or (), strict=True):
            put(container, "image", before.get("image"))
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        put(rest, key, was.get(key))
    grace = was.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = grace
    if was.get("schedulingGates"):
        validate_narrowing(rest, was, errors)
    if rest != was:
        changes = difference("core.PodSpec", was, rest)
        why = f"pod updates may not change fields other than {','.join(UPDATABLE)}\n{changes}"
        errors.append(field_forbidden("spec", why))


def _validate_no_return(kind: str, status: Obj, was: Obj, spec: Obj, errors: Errors) -> None:
    """Where containers are not restarted, one that has ended stays ended."""
    is_ephemeral = kind == "ephemeralContainerStatuses"
    policy = "Never" if is_ephemeral else spec.get("restartPolicy")
    if policy == "Always" or (not is_ephemeral and may_restart_all(spec)):
        return
    own_policies = _with_own_policy(spec)
    now = {item.get("name"): item.get("state") or {} for item in status.get(kind) or ()}
    for index, item in enumerate(was.get(kind) or ()):
        name, end = item.get("name"), (item.get("state") or {}).get("terminated")
        if end is None or name in own_policies or name not in now:
            continue
        if _has_returned(policy, end, now[name]):
            why = "may not be transitioned to non-terminated state"
            errors.append(field_forbidden(f"status.{kind}[{index}].state", why))


def _with_own_policy(spec: Obj) -> set[str]:
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return {
        container.get("name") or "" for container in containers if container.get("restartPolicy")
    }


def _has_returned(policy: str | None, end: Obj, now: Obj) -> bool:
    may_restart = policy == "OnFailure" and end.get("exitCode")
    return not may_restart and now.get("terminated") is None


def _validate_ips(status: Obj, was: Obj, errors: Errors) -> None:
    for kind in ("podIPs", "hostIPs"):
        listed = status.get(kind) or []
        if kind == "podIPs" and not listed and status.get("podIP"):
            listed = [{"ip": status["podIP"]}]  # as upstream's own form has it
        families = [family_of(item.get("ip") or "") for item in listed]
        kept = [item.get("ip") for item in was.get(kind) or ()]
        for index, item in enumerate(listed):
            validate_address(item.get("ip") or "", f"status.{kind}[{index}]", errors, kept)
        if len(families) > 1 and (families.count(4) > 1 or families.count(6) > 1):
            why = "may specify no more than one IP for each IP family"
            errors.append(invalid_value(f"status.{kind}", listed, why))


RULES = Rules(names.dns_subdomain, validate_pod_create, validate_pod_update, validate_pod_status)
