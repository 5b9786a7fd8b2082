"""Names of resource.k8s.io: of pools, of requests, of attributes and capacities, and raw JSON.

Job: what must hold of them wherever they stand: in classes, claims, slices, and a claim's status.
"""

from collections.abc import Callable, Collection
from typing import Any

import orjson

from sampan.api.errors import FieldError, duplicate, invalid_value, required_value, too_long
from sampan.api.errors import too_many as too_many_items
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import Repeats, validate_with
from sampan.api.validation.pod_spec.volumes import validate_csi_driver
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
MOST_REQUESTS = 32
_MOST_DATA_BYTES, _MOST_POOL_BYTES, _MOST_ID_BYTES, _MOST_DOMAIN_BYTES = 10 * 1024, 253, 32, 63
_MOST_SHOWN = _MOST_DOMAIN_BYTES + 1 + _MOST_ID_BYTES
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_C_IDENTIFIER_FORM = lazy_pattern(_C_IDENTIFIER)
_NOT_C = names.regex_complaint(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of"
    " alphanumeric characters or '_'",
    _C_IDENTIFIER, "my_name", "MY_NAME", "MyName",
)  # fmt: skip
_NOT_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest"
    " separated by '/'"
)


def validate_pool_name(pool: str, path: str, errors: Errors) -> None:
    if not pool:
        errors.append(required_value(path))
        return
    if len(pool.encode()) > _MOST_POOL_BYTES:
        errors.append(too_long(path, _MOST_POOL_BYTES))
    for part in pool.split("/"):
        validate_with(names.dns_subdomain, part, path, errors)


def names_of_requests(devices: Obj) -> set[str]:
    """Every name by which others may say which request they are for."""
    found: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name") or ""
        found.add(name)
        subs = request.get("firstAvailable") or ()
        found.update(f"{name}/{sub.get('name') or ''}" for sub in subs)
    return found


def validate_request_reference(
    name: str, path: str, requests: Collection[str], errors: Errors
) -> None:
    parts = name.split("/")
    if len(parts) <= 2:
        for part in parts:
            validate_with(names.dns_label, part, path, errors)
    if name not in requests:
        errors.append(invalid_value(path, name, _NOT_A_REQUEST))


def validate_request_references(
    given: list[str], path: str, requests: Collection[str], errors: Errors
) -> None:
    if len(given) > MOST_REQUESTS:
        errors.append(too_many_items(path, len(given), MOST_REQUESTS))
        return
    for index, name in enumerate(given):
        validate_request_reference(name, f"{path}[{index}]", requests, errors)
    is_repeated = Repeats()
    for index, name in enumerate(given):
        if is_repeated(name):
            errors.append(duplicate(f"{path}[{index}]", name))


def validate_qualified(name: str, path: str, errors: Errors) -> None:
    """ID or domain/ID; more slashes pass, as they do upstream."""
    parts = name.split("/")
    if len(parts) == 1:
        _validate_id(name, path, errors)
    elif len(parts) == 2:
        domain, own = parts
        if not domain:
            errors.append(invalid_value(path, "", "the domain must not be empty"))
        else:
            validate_csi_driver(domain, path, errors)
        if not own:
            errors.append(invalid_value(path, "", "the name must not be empty"))
        else:
            _validate_id(own, path, errors)


def validate_fully_qualified(name: str, path: str, errors: Errors) -> None:
    validate_qualified(name, path, errors)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid_value(path, name, why))


def validate_by_name(
    items: Obj, check: Callable[[Obj, str, Errors], None], path: str, errors: Errors
) -> None:
    """A map whose keys are qualified names; the middle of a key that is too long is not shown."""
    for name, item in items.items():
        here = f"{path}[{_shown(name)}]"
        validate_qualified(name, here, errors)
        check(item or {}, here, errors)


def validate_raw(data: Any, path: str, errors: Errors) -> None:
    """Somebody else's JSON."""
    if data is None:
        errors.append(required_value(path))
    elif len(orjson.dumps(data)) > _MOST_DATA_BYTES:
        errors.append(too_long(path, _MOST_DATA_BYTES))
    elif not isinstance(data, dict):
        errors.append(invalid_value(path, "<value omitted>", "must be a valid JSON object"))


def _validate_id(name: str, path: str, errors: Errors) -> None:
    if len(name.encode()) > _MOST_ID_BYTES:
        errors.append(too_long(path, _MOST_ID_BYTES))
    if not _C_IDENTIFIER_FORM.fullmatch(name):
        errors.append(invalid_value(path, name, _NOT_C))


def _shown(key: str) -> str:
    if len(key) <= _MOST_SHOWN:
        return key
    rest = _MOST_SHOWN - 3
    return f"{key[: (rest + 1) // 2]}...{key[-(rest // 2) :]}"
