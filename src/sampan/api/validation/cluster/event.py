"""Events, in either group: they are one kind upstream, and what is wrong is told by its names.

Job: what must hold of an Event: the old rules of every one, the strict ones of those that are
    written through events.k8s.io.
Invariant: an event without eventTime lives in the namespace of what it is about.
"""

from typing import Any

from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj, namespace_of
from sampan.api.rules import names
from sampan.api.validation.fields import IMMUTABLE
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules, same_rules

Errors = list[FieldError]
_INSTANCE, _ACTION, _REASON, _NOTE = 128, 128, 128, 1024  # characters
_UNSET = "needs to be unset"
_SHOWN = {"involvedObject": "ObjectReference", "related": "ObjectReference",
          "source": "EventSource"}  # fmt: skip
# By upstream's name: the name in events.k8s.io.
_IMMUTABLE = {
    "involvedObject": "regarding", "reason": "reason", "message": "note",
    "source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount", "type": "type",
    "eventTime": "eventTime", "action": "action", "related": "related",
    "reportingController": "reportingController", "reportingInstance": "reportingInstance",
}  # fmt: skip

_TEXTS = frozenset({"reason", "type", "action", "reportingController", "reportingInstance"})


def validate_core_event(event: Obj, errors: Errors) -> None:
    about, message = event.get("involvedObject") or {}, event.get("message") or ""
    _validate_old(event, about, message, "reportingComponent", errors)


def validate_new_event(event: Obj, errors: Errors) -> None:
    _validate_new(event, errors)
    _validate_series(event, errors)
    if not event.get("eventTime"):
        errors.append(required_value("eventTime"))
    kind = event.get("type") or ""
    if kind not in ("Normal", "Warning"):
        errors.append(invalid_value("type", "", f"has invalid value: {kind}"))
    for name in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(_IMMUTABLE[name]):
            errors.append(invalid_value(name, "", _UNSET))
    source = event.get("deprecatedSource") or {}
    if source.get("component") or source.get("host"):
        errors.append(invalid_value("source", "", _UNSET))


def validate_new_event_update(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_new(new, errors)
    if new.get("series") != old.get("series"):
        _validate_series(new, errors)
    for name, key in _IMMUTABLE.items():
        shown, was = new.get(key) or None, old.get(key) or None
        if shown != was:
            shown = internal_form(_SHOWN[name], shown) if name in _SHOWN else shown
            if shown is None and name in _TEXTS:
                shown = ""
            errors.append(invalid_value(name, shown, IMMUTABLE))


def _validate_new(event: Obj, errors: Errors) -> None:
    about, message = event.get("regarding") or {}, event.get("note") or ""
    _validate_old(event, about, message, "reportingController", errors)


def _validate_old(
    event: Obj, about: Obj, message: str, controller_field: str, errors: Errors
) -> None:
    """Whichever group it is written through."""
    namespace, of = namespace_of(event), about.get("namespace") or ""
    if not event.get("eventTime"):
        agrees = namespace == of if of else namespace in ("", "default")
        if not agrees:
            errors.append(_elsewhere(of))
        return
    if not of and namespace not in ("default", "kube-system"):
        errors.append(_elsewhere(of))
    controller = event.get(controller_field) or ""
    if not controller:
        errors.append(required_value(controller_field))
    for wrong in names.qualified_name(controller):
        errors.append(invalid_value(controller_field, controller, wrong))
    _validate_text(event.get("reportingInstance"), "reportingInstance", _INSTANCE, errors)
    _validate_text(event.get("action"), "action", _ACTION, errors)
    _validate_text(event.get("reason"), "reason", _REASON, errors)
    if len(message.encode()) > _NOTE:
        errors.append(invalid_value("message", "", f"can have at most {_NOTE} characters"))


def _elsewhere(about: str) -> FieldError:
    return invalid_value("involvedObject.namespace", about, "does not match event.namespace")


def _validate_text(text: Any, field: str, most: int, errors: Errors) -> None:
    if not text:
        errors.append(required_value(field))
    elif len(text.encode()) > most:
        errors.append(invalid_value(field, "", f"can have at most {most} characters"))


def _validate_series(event: Obj, errors: Errors) -> None:
    series = event.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        errors.append(invalid_value("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required_value("series.lastObservedTime"))


CORE = Rules(names.path_segment, validate_core_event, same_rules(validate_core_event))
NEW = Rules(names.dns_subdomain, validate_new_event, validate_new_event_update)
