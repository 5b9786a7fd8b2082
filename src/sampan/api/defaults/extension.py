"""Defaults of what extends the API: webhooks, policies, custom resources, aggregated servers.

Job: fill in policies, timeouts, scopes and names, as upstream does.
Invariant: a webhook that is not told otherwise refuses what it cannot judge.
"""

from sampan.api.defaults.fill import fill, part_of, spec_of
from sampan.api.objects import Obj

_HTTPS = 443
# Of a schema: what is there also with the zero value.
_POINTERS = frozenset({
    "additionalProperties", "additionalItems", "default", "example", "items", "not",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-map-type",
    "$ref",
})  # fmt: skip


def default_validating_webhooks(obj: Obj) -> None:
    for hook in obj.get("webhooks") or ():
        _default_hook(hook)


def default_mutating_webhooks(obj: Obj) -> None:
    for hook in obj.get("webhooks") or ():
        _default_hook(hook)
        fill(hook, reinvocationPolicy="Never")


def default_policy(obj: Obj) -> None:
    spec = spec_of(obj)
    fill(spec, failurePolicy="Fail")
    if spec.get("matchConstraints") is not None:
        _default_match(spec["matchConstraints"])


def default_policy_binding(obj: Obj) -> None:
    spec = spec_of(obj)
    if spec.get("matchResources") is not None:
        _default_match(spec["matchResources"])


def default_definition(obj: Obj) -> None:
    spec = spec_of(obj)
    names = part_of(spec, "names")
    kind = names.get("kind")
    if kind:
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind"):
            names["listKind"] = f"{kind}List"
    fill(spec, conversion={"strategy": "None"})
    for version in spec.get("versions") or ():
        fill(version, served=False, storage=False)
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(schema, dict):
            _drop_zeros(schema)
    client = (spec["conversion"].get("webhook") or {}).get("clientConfig") or {}
    _default_service(client.get("service"))


def _drop_zeros(schema: Obj) -> None:
    """Go leaves out what says nothing: false, empty texts, lists and maps, and null."""
    for key in [key for key, value in schema.items() if _says_nothing(key, value)]:
        del schema[key]
    for prop in (schema.get("properties") or {}).values():
        _drop_zeros(prop)
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            _drop_zeros(schema[key])
    for key in ("allOf", "anyOf", "oneOf"):
        for item in schema.get(key) or ():
            _drop_zeros(item)
    for rule in schema.get("x-kubernetes-validations") or ():
        for key in ("message", "messageExpression", "fieldPath"):
            if rule.get(key) == "":
                del rule[key]


def _says_nothing(key: str, value: object) -> bool:
    if value is None:
        return True
    if key in _POINTERS:
        return False
    return value is False or value == "" or value in ([], {})


def default_api_service(obj: Obj) -> None:
    _default_service(spec_of(obj).get("service"))


def _default_hook(hook: Obj) -> None:
    fill(
        hook,
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
    )
    _default_service((hook.get("clientConfig") or {}).get("service"))
    for rule in hook.get("rules") or ():
        fill(rule, scope="*")


def _default_match(match: Obj) -> None:
    fill(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for key in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(key) or ():
            fill(rule, scope="*")


def _default_service(service: Obj | None) -> None:
    if service is not None:
        fill(service, port=_HTTPS)
