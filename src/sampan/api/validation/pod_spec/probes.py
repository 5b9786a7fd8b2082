"""Probes and lifecycle hooks: one handler each, with sane numbers.

Job: liveness, readiness and startup probes, postStart and preStop → causes.
Invariant: a probe or hook has exactly one handler.
"""

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import POSITIVE, validate_not_negative, validate_port

Errors = list[FieldError]
_NUMBERS = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold",
)  # fmt: skip
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")


def validate_probes(container: Obj, grace: int | None, path: str, errors: Errors) -> None:
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        _validate_lifecycle(lifecycle, grace, f"{path}.lifecycle", errors)
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind)
        if probe is None:
            continue
        here = f"{path}.{kind}"
        _validate_probe(probe, grace, here, errors)
        if kind == "readinessProbe":
            seconds = probe.get("terminationGracePeriodSeconds")
            if seconds is not None:
                field = f"{here}.terminationGracePeriodSeconds"
                errors.append(invalid_value(field, seconds, "must not be set for readinessProbes"))
        elif (probe.get("successThreshold") or 0) != 1:
            value = probe.get("successThreshold") or 0
            errors.append(invalid_value(f"{here}.successThreshold", value, "must be 1"))


def forbid_probes(container: Obj, path: str, errors: Errors) -> None:
    """An init container that ends has neither hooks nor probes."""
    for kind in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(kind) is not None:
            why = "may not be set for init containers without restartPolicy=Always"
            errors.append(field_forbidden(f"{path}.{kind}", why))


def _validate_probe(probe: Obj, grace: int | None, path: str, errors: Errors) -> None:
    _validate_handler(probe, _PROBE_HANDLERS, grace, path, errors)
    for number in _NUMBERS:
        validate_not_negative(probe.get(number), f"{path}.{number}", errors)
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(invalid_value(f"{path}.terminationGracePeriodSeconds", seconds, POSITIVE))


def _validate_lifecycle(lifecycle: Obj, grace: int | None, path: str, errors: Errors) -> None:
    for hook in ("postStart", "preStop"):
        handler = lifecycle.get(hook)
        if handler is not None:
            _validate_handler(handler, _HOOK_HANDLERS, grace, f"{path}.{hook}", errors)


def _validate_handler(
    handler: Obj, kinds: tuple[str, ...], grace: int | None, path: str, errors: Errors
) -> None:
    seen = False
    for kind in kinds:
        action = handler.get(kind)
        if action is None:
            continue
        if seen:
            why = "may not specify more than 1 handler type"
            errors.append(field_forbidden(f"{path}.{kind}", why))
            continue
        seen = True
        _validate_action(kind, action, grace, f"{path}.{kind}", errors)
    if not seen:
        errors.append(required_value(path, "must specify a handler type"))


def _validate_action(kind: str, action: Obj, grace: int | None, path: str, errors: Errors) -> None:
    if kind == "exec":
        if not action.get("command"):
            errors.append(required_value(f"{path}.command"))
    elif kind == "httpGet":
        _validate_http(action, path, errors)
    elif kind == "sleep":
        seconds = action.get("seconds") or 0
        if grace is not None and not 0 <= seconds <= grace:
            why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            errors.append(invalid_value(path, seconds, why))
    else:
        validate_port(action.get("port"), f"{path}.port", errors)


def _validate_http(action: Obj, path: str, errors: Errors) -> None:
    if not action.get("path"):
        errors.append(required_value(f"{path}.path"))
    validate_port(action.get("port"), f"{path}.port", errors)
    scheme = action.get("scheme") or ""
    if scheme not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", scheme, ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        for wrong in names.header_name(name):
            errors.append(invalid_value(f"{path}.httpHeaders", name, wrong))
