"""Webhook configurations of admission.

Job: what must hold of them; the policies of the same group are in policies.py.
Invariant: a webhook that could act on a dry run is refused.
"""

from urllib.parse import urlsplit

from sampan.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.cluster.policies import validate_hook_conditions
from sampan.api.validation.fields import Repeats, validate_with
from sampan.api.validation.matching import validate_rules
from sampan.api.validation.rules import Rules, same_rules
from sampan.api.validation.selectors import validate_label_selector

Errors = list[FieldError]


def validate_webhooks(configuration: Obj, errors: Errors) -> None:
    seen: set[str] = set()
    for index, hook in enumerate(configuration.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        name = hook.get("name") or ""
        _validate_hook(hook, name, path, errors)
        if name and name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)


def validate_client(client: Obj, path: str, errors: Errors) -> None:
    """Of webhooks and of conversions: a URL or a service, exactly one."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errors.append(required_value(path, "exactly one of url or service is required"))
    elif url is not None:
        _validate_url(url, f"{path}.url", errors)
    elif service is not None:
        _validate_service(service, f"{path}.service", errors)


def _validate_service(service: Obj, path: str, errors: Errors) -> None:
    # Upstream takes the one for the other: where the name is missing, it asks for the namespace.
    for key, asked in (("namespace", "name"), ("name", "namespace")):
        if not service.get(key):
            errors.append(required_value(f"{path}.{asked}"))
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid_value(f"{path}.port", port, why))
    where = service.get("path")
    if where in (None, "", "/"):
        return
    if where == "//":
        errors.append(invalid_value(f"{path}.path", where, "segment[0] may not be empty"))
        return
    if not where.startswith("/"):
        errors.append(invalid_value(f"{path}.path", where, "must start with a '/'"))
    for index, segment in enumerate(where[1:].removesuffix("/").split("/")):
        wrong = names.dns_subdomain(segment) if segment else ()
        told = [f"segment[{index}]: {item}" for item in wrong]
        for why in told if segment else [f"segment[{index}] may not be empty"]:
            errors.append(invalid_value(f"{path}.path", where, why))


def _validate_hook(hook: Obj, name: str, path: str, errors: Errors) -> None:
    _validate_full_name(name, f"{path}.name", errors)
    validate_rules(hook, "rules", path, errors)
    choices = {
        "failurePolicy": ("Fail", "Ignore"),
        "matchPolicy": ("Equivalent", "Exact"),
        "reinvocationPolicy": ("IfNeeded", "Never"),
    }
    for key, allowed in choices.items():
        value = hook.get(key)
        if value is not None and value not in allowed:
            errors.append(not_supported(f"{path}.{key}", value, allowed))
    effects = hook.get("sideEffects")
    if effects is None:
        errors.append(
            required_value(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
        )
    elif effects not in ("None", "NoneOnDryRun"):
        errors.append(not_supported(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun")))
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid_value(f"{path}.timeoutSeconds", seconds, why))
    for key in ("namespaceSelector", "objectSelector"):
        validate_label_selector(hook.get(key), f"{path}.{key}", errors)
    validate_client(hook.get("clientConfig") or {}, f"{path}.clientConfig", errors)
    conditions = hook.get("matchConditions") or ()
    validate_hook_conditions(conditions, f"{path}.matchConditions", errors)
    _validate_versions(hook.get("admissionReviewVersions") or [], path, errors)


def _validate_full_name(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required_value(path))
        return
    wrong = names.dns_subdomain(name)
    if wrong:
        errors.append(invalid_value(path, name, ",".join(wrong)))
    elif name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        errors.append(invalid_value(path, name, why))


def _validate_versions(versions: list[str], path: str, errors: Errors) -> None:
    field = f"{path}.admissionReviewVersions"
    if not versions:
        errors.append(required_value(field, "must specify one of v1, v1beta1"))
    elif not {"v1", "v1beta1"} & set(versions):
        why = "must include at least one of v1, v1beta1"
        errors.append(invalid_value(field, versions, why))
    is_repeated = Repeats()
    for index, version in enumerate(versions):
        validate_with(names.dns_1035_label, version, f"{field}[{index}]", errors)
        if is_repeated(version):
            errors.append(invalid_value(f"{field}[{index}]", version, "duplicate version"))


def _validate_url(url: str, path: str, errors: Errors) -> None:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        errors.append(required_value(path, f"url must be a valid URL{form}"))
        return
    if parts.scheme != "https":
        why = f"'https' is the only allowed URL scheme{form}"
        errors.append(invalid_value(path, parts.scheme, why))
    if not host:
        errors.append(invalid_value(path, parts.netloc, f"host must be specified{form}"))
    if parts.username is not None or parts.password is not None:
        why = "user information is not permitted in the URL"
        errors.append(invalid_value(path, parts.username or "", why))
    if parts.fragment:
        why = "fragments are not permitted in the URL"
        errors.append(invalid_value(path, parts.fragment, why))
    if parts.query:
        why = "query parameters are not permitted in the URL"
        errors.append(invalid_value(path, parts.query, why))


RULES = Rules(names.dns_subdomain, validate_webhooks, same_rules(validate_webhooks))
