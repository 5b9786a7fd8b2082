"""Bad values as upstream's internal types print them in messages.

Job: an object → the same with Go's own field names, in their order, and with what nobody has set:
    types without JSON names are printed that way. Pure.
Invariant: only messages have this form; nothing is ever decided by it.
"""

from functools import cache
from typing import Any, NamedTuple

from sampan.api.objects import Obj
from sampan.core.files.packaged_data import packaged_data

_ZEROS = {'""': "", "0": 0, "false": False, '"0"': "0", "": None}
# What the API has beside a pod's security context, upstream has in it.
_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_TEMPLATES = ("core.PodTemplateSpec", "resource.ResourceClaimTemplateSpec")


class _Field(NamedTuple):
    name: str  # as it is printed
    key: str  # in the API
    form: str  # of the value, where it has one
    zero: str
    is_omitted: bool  # when it is empty


def internal_form(kind: str, value: Any) -> Any:
    """`kind`: `core.PodSpec`, or without its group where only one has such a type."""
    fields = _forms().get(kind)
    if fields is None:
        (kind,) = [name for name in _forms() if name.endswith(f".{kind}")]
        fields = _forms()[kind]
    return _shown(kind, fields, value)


def _shown(kind: str, fields: tuple[_Field, ...], value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(kind, fields, item) for item in value]
    if value is None:
        return None
    if kind == "core.PodSpec":
        value = _with_host_namespaces(value)
    elif kind in _TEMPLATES:  # their metadata stands among their fields
        value = {**(value.get("metadata") or {}), **value}
    shown: Obj = {}
    for field in fields:
        found = value.get(field.key)
        if found is None and field.zero == "{}":
            found = {}
        if field.form:
            shown[field.name] = _inner(field, found)
        else:
            shown[field.name] = _ordered(found)
        if shown[field.name] is None:
            shown[field.name] = _ZEROS[field.zero]
        if field.is_omitted and not shown[field.name]:
            del shown[field.name]
    return shown


def _inner(field: _Field, value: Any) -> Any:
    fields = _forms()[field.form]
    keys = {own.key for own in fields}
    if isinstance(value, dict) and not keys & {*value} and field.zero != "{}" and value:
        return {key: _shown(field.form, fields, value[key]) for key in sorted(value)}  # a map
    return _shown(field.form, fields, value)


def _with_host_namespaces(spec: Obj) -> Obj:
    moved = {key: spec[key] for key in _HOST if key in spec}
    context = {**(spec.get("securityContext") or {}), **moved}
    return {**spec, "securityContext": context}


def _ordered(value: Any) -> Any:
    """Maps as Go prints them: by the alphabet."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


@cache
def _forms() -> dict[str, tuple[_Field, ...]]:
    types: dict[str, str] = packaged_data("internal_forms")["types"]
    return {kind: tuple(map(_field, fields.split())) for kind, fields in types.items()}


def _field(token: str) -> _Field:
    head, _, zero = token.partition("=")
    head, _, form = head.partition(":")
    name, _, key = head.partition("<")
    if name.startswith("~"):
        return _Field(name[1:], name[1:], form, zero, True)
    return _Field(name, key or name[0].lower() + name[1:], form, zero, False)
