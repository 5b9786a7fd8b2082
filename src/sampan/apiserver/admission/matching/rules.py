"""matchConstraints and webhook rules: which writes they match. Pure.

Job: rules (operations, groups, versions, resources, scope), namespace and object selectors.
Invariant: configurations of admission itself are never matched: nobody can lock themselves out.
"""

from collections.abc import Iterable
from dataclasses import replace

from sampan.api import convert
from sampan.api.custom.custom_version import custom_of
from sampan.api.objects import Obj, labels_of
from sampan.api.resources import NAMESPACES, Resource
from sampan.api.rules import selectors
from sampan.api.served import served_resources
from sampan.apiserver.admission.chain import Attributes, Find
from sampan.core.fast_dataclass import dataclass

_OWN = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Matched:
    """The resource under which a rule found the write: its own, or another version of it."""

    resource: Resource


def is_exempt(attributes: Attributes) -> bool:
    return attributes.resource.group == _OWN


def match_rules(rules: Iterable[Obj], attributes: Attributes, equivalent: bool) -> Matched | None:
    rules = list(rules)
    if any(_rule_matches(rule, attributes, attributes.resource) for rule in rules):
        return Matched(attributes.resource)
    if not equivalent:
        return None
    if attributes.equivalents is None:
        attributes.equivalents = _equivalents(attributes.resource)
    for other in attributes.equivalents:
        if any(_rule_matches(rule, attributes, other) for rule in rules):
            return Matched(other)
    return None


def is_excluded(rules: Iterable[Obj], attributes: Attributes, equivalent: bool) -> bool:
    return match_rules(rules, attributes, equivalent) is not None


def as_matched(found: Matched, attributes: Attributes, obj: Obj | None) -> Obj | None:
    """The object in the version of the rule. Raises FormWanted."""
    if obj is None or found.resource is attributes.resource:
        return obj
    if found.resource.custom is not None:
        return shown_object(found.resource, obj)
    return convert.from_stored(found.resource, convert.to_stored(attributes.resource, obj))


def shown_object(resource: Resource, obj: Obj) -> Obj:
    """A stored object in the version of a resource. Raises FormWanted where only a webhook can
    tell."""
    custom = custom_of(resource)
    if custom is None:
        return convert.from_stored(resource, obj)
    shown = custom.shown(obj)
    if shown is not None:
        return shown
    form = custom.defaulted(custom.family.converted(obj, custom.version))
    fields = (obj.get("metadata") or {}).get("managedFields")
    if fields is None:
        return form
    return {**form, "metadata": {**form["metadata"], "managedFields": fields}}


def namespace_matches(selector: Obj | None, attributes: Attributes, find: Find) -> bool:
    if not selector:
        return True
    if attributes.resource is NAMESPACES:
        shown = attributes.obj if attributes.obj is not None else attributes.old
        return selectors.from_object(selector).matches(labels_of(shown or {}))
    if not attributes.namespace:
        return True
    namespace = find(NAMESPACES, "", attributes.namespace)
    return selectors.from_object(selector).matches(labels_of(namespace or {}))


def object_matches(selector: Obj | None, attributes: Attributes) -> bool:
    if not selector:
        return True
    compiled = selectors.from_object(selector)
    return any(
        item is not None and compiled.matches(labels_of(item))
        for item in (attributes.obj, attributes.old)
    )


def _equivalents(resource: Resource) -> list[Resource]:
    custom = custom_of(resource)
    if custom is not None:
        return [
            replace(resource, version=version.version, custom=version)
            for version in custom.family.versions.values()
            if version.is_served and version.version != custom.version
        ]
    prefix = resource.storage_prefix
    return [
        item
        for item in served_resources()
        if item is not resource and item.storage_prefix == prefix
    ]


def _rule_matches(rule: Obj, attributes: Attributes, resource: Resource) -> bool:
    scope = rule.get("scope") or "*"
    # A namespace counts as cluster-scoped, though its requests carry its name as the namespace.
    namespaced = resource.namespaced
    if scope != "*" and (scope == "Namespaced") != namespaced:
        return False
    names = rule.get("resourceNames") or ()
    return (
        _in(attributes.operation, rule.get("operations"))
        and _in(resource.group, rule.get("apiGroups"))
        and _in(resource.version, rule.get("apiVersions"))
        and any(
            _resource_matches(item, resource.plural, attributes.subresource)
            for item in rule.get("resources") or ()
        )
        and (not names or attributes.name in names)
    )


def _in(value: str, words: list[str] | None) -> bool:
    return bool(words) and (value in (words or ()) or "*" in (words or ()))


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    of, slash, sub = pattern.partition("/")
    if of not in ("*", plural):
        return False
    if not slash:
        return not subresource
    return sub == "*" or sub == subresource
