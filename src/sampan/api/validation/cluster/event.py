"""Events, as the core group stores them.

Job: what must hold of an Event, in either group.
Invariant: an event lives in the namespace of what it is about.
"""

from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj, namespace_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_immutable, validate_not_negative
from sampan.api.validation.rules import Rules, same_rules

Errors = list[FieldError]
_NEW_LIMITS = {"action": 128, "reason": 128, "note": 1024}


def validate_core_event(event: Obj, errors: Errors) -> None:
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    _validate_namespace(event, about, "involvedObject.namespace", errors)
    validate_not_negative(event.get("count"), "count", errors)


def validate_new_event(event: Obj, errors: Errors) -> None:
    if not event.get("eventTime"):
        errors.append(required_value("eventTime"))
    controller, instance = event.get("reportingController") or "", event.get("reportingInstance")
    if not controller:
        errors.append(required_value("reportingController"))
    for wrong in names.qualified_name(controller):
        errors.append(invalid_value("reportingController", controller, wrong))
    if not instance:
        errors.append(required_value("reportingInstance"))
    elif len(instance) > 128:
        errors.append(invalid_value("reportingInstance", "", "can have at most 128 characters"))
    for key, limit in _NEW_LIMITS.items():
        if key != "note" and not event.get(key):
            errors.append(required_value(key))
        if len(event.get(key) or "") > limit:
            errors.append(invalid_value(key, "", f"can have at most {limit} characters"))
    if event.get("type") not in ("Normal", "Warning"):
        errors.append(invalid_value("type", "", f"has invalid value: {event.get('type') or ''}"))


def validate_new_event_update(new: Obj, old: Obj, errors: Errors) -> None:
    for key in (
        "regarding", "reason", "action", "related", "reportingController", "reportingInstance",
        "note", "type", "eventTime",
    ):  # fmt: skip
        validate_immutable(new.get(key), old.get(key), key, errors)


def _validate_namespace(event: Obj, about: str, path: str, errors: Errors) -> None:
    """What has no namespace of its own is reported in `default` (or in `kube-system`)."""
    namespace = namespace_of(event)
    if about:
        if about != namespace:
            errors.append(invalid_value(path, about, "does not match event.namespace"))
    elif namespace not in ("", "default", "kube-system"):
        errors.append(invalid_value(path, about, "does not match event.namespace"))


CORE = Rules(names.dns_subdomain, validate_core_event, same_rules(validate_core_event))
NEW = Rules(names.dns_subdomain, validate_new_event, validate_new_event_update)
