"""Defaults of what extends the API: webhooks, policies, custom resources, aggregated servers.

Job: fill in policies, timeouts, scopes and names, as v1.35 does.
Invariant: a webhook that is not told otherwise refuses what it cannot judge.
"""

from sampan.api.defaults.fill import filled, part_of, spec_of
from sampan.api.objects import Obj

_HTTPS = 443


def default_validating_webhooks(obj: Obj) -> None:
    for hook in obj.get("webhooks") or ():
        _default_hook(hook)


def default_mutating_webhooks(obj: Obj) -> None:
    for hook in obj.get("webhooks") or ():
        _default_hook(hook)
        filled(hook, reinvocationPolicy="Never")


def default_policy(obj: Obj) -> None:
    spec = spec_of(obj)
    filled(spec, failurePolicy="Fail")
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
    filled(spec, conversion={"strategy": "None"})
    client = (spec["conversion"].get("webhook") or {}).get("clientConfig") or {}
    _default_service(client.get("service"))


def default_api_service(obj: Obj) -> None:
    _default_service(spec_of(obj).get("service"))


def _default_hook(hook: Obj) -> None:
    filled(
        hook,
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
    )
    _default_service((hook.get("clientConfig") or {}).get("service"))
    for rule in hook.get("rules") or ():
        filled(rule, scope="*")


def _default_match(match: Obj) -> None:
    filled(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for key in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(key) or ():
            filled(rule, scope="*")


def _default_service(service: Obj | None) -> None:
    if service is not None:
        filled(service, port=_HTTPS)
